/** RRsets of a zone on their way into a reply. */
import { TYPE } from '../wire/iana.ts';
import { NAME_MAX } from '../wire/name.ts';
import { SECTION, type MessageWriter, type Section } from '../wire/writer.ts';
import { writeData } from './record-data.ts';
import type { ZoneData } from './zone-data.ts';

/**
 * The owner of the written records: the last node that `apex` or `node` chose, or the queried name.
 */
export type Owner = 'node' | 'name';

/**
 * Writes the current RRsets of a zone, with their signatures where the query wants them (RFC 4035,
 * section 3.1).
 */
export class RrsetWriter {
  /** The type of the last RRset in the answer section. */
  answeredType = 0;
  readonly #writer: MessageWriter;
  readonly #owner = new Uint8Array(NAME_MAX + 1);
  #zone!: ZoneData;
  /** True if signatures are written. */
  #dnssec = false;
  #most = 0;
  /** A record is missing, so TC is set. */
  cut = false;
  #name: Uint8Array = this.#owner;
  #nameAt = -1;

  constructor(writer: MessageWriter) {
    this.#writer = writer;
  }

  /**
   * Begins a reply from this zone.
   * @param most once the message has this many bytes, nothing more is written, and TC is set
   */
  begin(zone: ZoneData, dnssec: boolean, most: number): void {
    this.#zone = zone;
    this.#dnssec = dnssec;
    this.#most = most;
    this.cut = false;
  }

  /**
   * Sets the queried name.
   * @param at its position in the message; -1: nowhere that a pointer reaches
   */
  lookFor(name: Uint8Array, at: number): void {
    this.#name = name;
    this.#nameAt = at;
  }

  /** The apex becomes the owner. */
  apex(): void {
    const { origin } = this.#zone;
    for (let i = 0; i < origin.length; i++) this.#owner[i] = origin[i]!;
  }

  /** A node becomes the owner. */
  node(node: number): void {
    this.#zone.name(node, this.#owner);
  }

  /** Writes the current RRset of the zone. @param ttl replaces its own; -1: no */
  write(section: Section, owner: Owner, ttl = -1, signed: boolean = this.#dnssec): void {
    const zone = this.#zone;
    const writer = this.#writer;
    const { data, type } = zone;
    if (ttl < 0) ttl = zone.ttl;
    if (section === SECTION.answer) this.answeredType = type;
    let at = zone.recordsAt;
    for (let left = zone.count; left > 0; left--) {
      if (this.#isFull()) return;
      at = zone.varint(at);
      const length = zone.value;
      this.open(section, owner, type, ttl);
      writeData(writer, type, data, at, length);
      writer.close();
      at += length;
    }
    if (signed) this.signatures(section, owner, ttl);
  }

  /**
   * Writes the signatures of the current RRset of the zone.
   * @returns whether there are any
   */
  signatures(section: Section, owner: Owner, ttl: number = this.#zone.ttl): boolean {
    const zone = this.#zone;
    const writer = this.#writer;
    let at = zone.signaturesAt;
    for (let left = zone.signatures; left > 0; left--) {
      if (this.#isFull()) break;
      at = zone.varint(at);
      this.open(section, owner, TYPE.RRSIG, ttl);
      writer.bytes(zone.data, at, zone.value);
      writer.close();
      at += zone.value;
    }
    return zone.signatures > 0;
  }

  #isFull(): boolean {
    if (this.#writer.length < this.#most) return false;
    if (!this.cut) this.#writer.cut();
    this.cut = true;
    return true;
  }

  /** Begins a record, whose data follow. */
  open(section: Section, owner: Owner, type: number, ttl: number): void {
    if (owner === 'node') this.#writer.open(section, this.#owner, type, ttl);
    else if (this.#nameAt > 0) this.#writer.openAt(section, this.#nameAt, type, ttl);
    else this.#writer.open(section, this.#name, type, ttl);
  }
}
