/** Writes this plugin's replies. */
import { writeClusterSoa } from '../../../wire/cluster-soa.ts';
import { FLAG, HEADER, MESSAGE_MAX, RCODE, TYPE } from '../../../wire/iana.ts';
import { NAME_MAX, type WireName } from '../../../wire/name.ts';
import type { Query } from '../../../transport/query.ts';
import type { Reply } from '../../../wire/reply.ts';
import { SECTION, type MessageWriter, type Section } from '../../../wire/writer.ts';

/** The plugin's name in replies. */
export const PLUGIN = 'kubernetes';

/** Maximum size of another record in bytes, which is three names and the fixed parts. */
const RECORD_MAX = 3 * NAME_MAX + 64;

/**
 * Writes the replies of this plugin. It keeps the current question and the question's zone in the client's spelling,
 * which is used in SOA and SRV targets as in CoreDNS. Names below the zone are compressed to pointers into the
 * question.
 */
export class ReplyBuilder {
  /** TTL of all records in seconds. */
  readonly ttl: number;
  readonly #writer: MessageWriter;
  #zone: WireName = scratch;
  #most = 0;
  #answers = 0;
  #full = false;

  constructor(writer: MessageWriter, ttl: number) {
    this.#writer = writer;
    this.ttl = ttl;
  }

  get zone(): WireName {
    return this.#zone;
  }

  get answers(): number {
    return this.#answers;
  }

  get full(): boolean {
    return this.#full;
  }

  /**
   * Starts a reply, with AA set.
   * @param most maximum size in bytes; records that exceed it are not written, and TC is set
   */
  begin(query: Query, zoneLength: number, most: number = MESSAGE_MAX): void {
    const end = query.start + HEADER.SIZE + query.nameLength;
    this.#zone = query.bytes.subarray(end - zoneLength, end);
    this.#answers = 0;
    this.#full = false;
    this.#most = Math.min(most, MESSAGE_MAX - RECORD_MAX);
    this.#writer.reply(query, FLAG.AA);
  }

  /**
   * Returns a copy of a name below the zone in the client's spelling. Returns null if it would be too long or a label
   * is invalid.
   */
  nameBelow(labels: readonly string[], zone: WireName = this.#zone): WireName | null {
    return nameBelow(labels, zone);
  }

  address(
    section: Section,
    owner: WireName | null,
    bytes: Uint8Array,
    at: number,
    length: number,
  ): void {
    if (!this.#room(section)) return;
    this.#writer.record(
      section,
      owner,
      length === 4 ? TYPE.A : TYPE.AAAA,
      this.ttl,
      bytes,
      at,
      length,
    );
  }

  srv(weight: number, port: number, target: WireName): void {
    if (!this.#room(SECTION.answer)) return;
    const writer = this.#writer;
    writer.open(SECTION.answer, null, TYPE.SRV, this.ttl);
    writer.srvData(0, weight, port, target);
    writer.close();
  }

  /** Writes a record for the question's name whose data is a single name, such as CNAME, NS or PTR. */
  alias(type: number, target: WireName, owner: WireName | null = null): void {
    if (!this.#room(SECTION.answer)) return;
    this.#writer.named(SECTION.answer, owner, type, this.ttl, target);
  }

  text(text: string, ttl: number): void {
    this.#room(SECTION.answer);
    const writer = this.#writer;
    writer.open(SECTION.answer, null, TYPE.TXT, ttl);
    writer.u8(text.length);
    for (let i = 0; i < text.length; i++) writer.u8(text.charCodeAt(i));
    writer.close();
  }

  soa(section: Section, serial: number): void {
    this.#room(section);
    const ttl = Math.min(this.ttl, SOA_TTL_MAX);
    writeClusterSoa(this.#writer, section, this.#zone, serial, this.ttl, ttl);
  }

  finish(): Reply {
    return this.#writer.finish(RCODE.NOERROR, PLUGIN);
  }

  abandon(): void {
    this.#writer.abandon();
  }

  /** Builds a whole reply without answers, with the SOA in the authority section. */
  negative(query: Query, zoneLength: number, rcode: number, serial: number): Reply {
    this.begin(query, zoneLength);
    this.soa(SECTION.authority, serial);
    return this.#writer.finish(rcode, PLUGIN);
  }

  #room(section: Section): boolean {
    if (this.#writer.length >= this.#most) {
      if (!this.#full) this.#writer.cut();
      this.#full = true;
      return false;
    }
    if (section === SECTION.answer) this.#answers++;
    return true;
  }
}

/** Returns a copy of a name below a zone, or null if it would be too long or a label is invalid. */
export function nameBelow(labels: readonly string[], zone: WireName): WireName | null {
  let at = 0;
  for (const label of labels) {
    if (at + 1 + label.length + zone.length > NAME_MAX || !LABEL.test(label)) return null;
    scratch[at++] = label.length;
    for (let i = 0; i < label.length; i++) scratch[at++] = label.charCodeAt(i);
  }
  const whole = scratch.slice(0, at + zone.length);
  whole.set(zone, at);
  return whole;
}

const scratch = new Uint8Array(NAME_MAX + 1);
/** Matches valid labels. A dot or a backslash would change the name for programs that read it as text. */
const LABEL = /^[^.\\]{1,63}$/;
/** Maximum TTL of the SOA record in seconds, as in CoreDNS. */
export const SOA_TTL_MAX = 300;
