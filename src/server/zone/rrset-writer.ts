/** Writes a zone's RRsets into a reply. */
import { TYPE } from '../wire/iana.ts';
import { NAME_MAX } from '../wire/name.ts';
import { SECTION, type MessageWriter, type Section } from '../wire/writer.ts';
import { writeData } from './record-data.ts';
import type { ZoneData } from './zone-data.ts';

/**
 * The owner of the records being written, which is the last node selected by `apex` or `node`, or else the queried
 * name.
 */
export type Owner = 'node' | 'name';

/** Writes a zone's current RRsets, with their signatures if the query requests them (RFC 4035, section 3.1). */
export class RrsetWriter {
  /** The type of the last RRset in the answer section. */
  answeredType = 0;
  readonly #writer: MessageWriter;
  readonly #owner = new Uint8Array(NAME_MAX + 1);
  #zone!: ZoneData;
  /** True if signatures are written. */
  #dnssec = false;
  #most = 0;
  /** True if a record had to be omitted, so TC is set. */
  cut = false;
  #name: Uint8Array = this.#owner;
  #nameAt = -1;

  constructor(writer: MessageWriter) {
    this.#writer = writer;
  }

  /**
   * Starts a reply from this zone.
   * @param most maximum message size in bytes; anything beyond it is omitted and TC is set
   */
  begin(zone: ZoneData, dnssec: boolean, most: number): void {
    this.#zone = zone;
    this.#dnssec = dnssec;
    this.#most = most;
    this.cut = false;
  }

  /**
   * Sets the queried name.
   * @param at its position in the message, or -1 if pointers cannot reach it
   */
  lookFor(name: Uint8Array, at: number): void {
    this.#name = name;
    this.#nameAt = at;
  }

  apex(): void {
    const { origin } = this.#zone;
    for (let i = 0; i < origin.length; i++) this.#owner[i] = origin[i]!;
  }

  node(node: number): void {
    this.#zone.name(node, this.#owner);
  }

  /**
   * Writes the zone's current RRset.
   * @param ttl replaces the RRset's own TTL; -1 leaves it unchanged
   */
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
   * Writes the signatures for the zone's current RRset.
   * @returns true if there are any
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

  /** Starts a record, whose data follow. */
  open(section: Section, owner: Owner, type: number, ttl: number): void {
    if (owner === 'node') this.#writer.open(section, this.#owner, type, ttl);
    else if (this.#nameAt > 0) this.#writer.openAt(section, this.#nameAt, type, ttl);
    else this.#writer.open(section, this.#name, type, ttl);
  }
}
