/** A query for one of the names in a search path. */
import { FLAG, HEADER, TYPE } from '../../wire/iana.ts';
import { NAME_MAX, type WireName } from '../../wire/name.ts';
import { Query } from '../../transport/query.ts';

const OPT_SIZE = 11;

/**
 * Replaces a client's query with one for a different name, but with the same client, type, flags and EDNS. The object
 * is reused, so a link that needs it after the chain has returned must retain it, like any other query.
 */
export class Candidate {
  readonly #query = new Query();
  #bytes = new Uint8Array(1024);
  /** True while in use, because an internal lookup may pass through this link again. */
  busy = false;

  /**
   * Builds the candidate query.
   * @param base the query whose name is kept up to this offset
   * @param suffix `from[at, end)`, the remaining labels up to the root
   * @returns null if the name would be too long
   */
  make(query: Query, base: number, from: Uint8Array, at: number, end: number): Query | null {
    const length = base + end - at;
    if (length > NAME_MAX) return null;
    const options = query.optionsEnd - query.optionsStart;
    const size = HEADER.SIZE + length + 4 + (query.edns ? OPT_SIZE + options : 0);
    if (size > this.#bytes.length) this.#bytes = new Uint8Array(2 * size);
    this.#write(query, base, from.subarray(at, end));
    const asked = this.#query;
    const triage = asked.read(this.#bytes, 0, size);
    if (triage !== 'serve') throw new Error(`cannot parse a query that was built here: ${triage}`);
    asked.udpLimit = query.udpLimit;
    asked.askFor(query);
    return asked;
  }

  #write(query: Query, base: number, suffix: WireName): void {
    const out = this.#bytes;
    const flags = query.flags & ~FLAG.QR;
    out.fill(0, 0, HEADER.SIZE);
    u16(out, HEADER.ID, query.id);
    u16(out, HEADER.FLAGS, flags);
    u16(out, HEADER.QDCOUNT, 1);
    const name = query.start + HEADER.SIZE;
    let at: number = HEADER.SIZE;
    for (let i = 0; i < base; i++) out[at++] = query.bytes[name + i]!;
    for (let i = 0; i < suffix.length; i++) out[at++] = suffix[i]!;
    at = u16(out, at, query.type);
    at = u16(out, at, query.class);
    if (!query.edns) return;
    u16(out, HEADER.ARCOUNT, 1);
    out[at++] = 0;
    at = u16(out, at, TYPE.OPT);
    at = u16(out, at, query.udpSize);
    at = u16(out, at, 0);
    at = u16(out, at, query.dnssecOk ? 0x8000 : 0);
    at = u16(out, at, query.optionsEnd - query.optionsStart);
    for (let i = query.optionsStart; i < query.optionsEnd; i++) out[at++] = query.bytes[i]!;
  }
}

function u16(out: Uint8Array, at: number, value: number): number {
  out[at] = value >> 8;
  out[at + 1] = value & 0xff;
  return at + 2;
}
