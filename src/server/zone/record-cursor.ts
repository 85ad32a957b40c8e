import { TYPE } from '../wire/iana.ts';
import { NAME_MAX } from '../wire/name.ts';
import type { ZoneData } from './zone-data.ts';

/**
 * Iterates over all records in a zone, one at a time, in canonical order, with signatures after the records that they
 * cover. The SOA record comes first. It allocates nothing. It can also iterate over the records of a single node,
 * excluding the SOA record.
 */
export class RecordCursor {
  readonly owner: Uint8Array = new Uint8Array(NAME_MAX + 1);
  type = 0;
  ttl = 0;
  /** The data is `zone.data[at, at + length)`. */
  at = 0;
  length = 0;
  node = -1;
  readonly #zone: ZoneData;
  /** Remaining records and signatures in the current RRset. */
  #records = 0;
  #signatures = 0;
  #recordAt = 0;
  #signatureAt = 0;
  #soaGiven = false;
  #within = false;

  readonly #end: number;

  /** @param only the node whose records to iterate over */
  constructor(zone: ZoneData, only?: number) {
    this.#zone = zone;
    this.#end = only === undefined ? zone.size : only + 1;
    if (only === undefined) return;
    this.#soaGiven = true;
    this.node = only - 1;
  }

  next(): boolean {
    const zone = this.#zone;
    if (!this.#soaGiven) return this.#soa();
    for (;;) {
      if (this.#records > 0) {
        this.#records--;
        this.type = zone.type;
        this.#recordAt = this.#take(this.#recordAt);
        return true;
      }
      if (this.#signatures > 0) {
        this.#signatures--;
        this.type = TYPE.RRSIG;
        this.#signatureAt = this.#take(this.#signatureAt);
        return true;
      }
      if (this.#within && zone.next()) {
        this.#records = this.node === 0 && zone.type === TYPE.SOA ? 0 : zone.count;
        this.#recordAt = zone.recordsAt;
        this.#signatures = zone.signatures;
        this.#signatureAt = zone.signaturesAt;
        this.ttl = zone.ttl;
        continue;
      }
      if (++this.node >= this.#end) return false;
      zone.name(this.node, this.owner);
      zone.sets(this.node);
      this.#within = true;
    }
  }

  #soa(): boolean {
    const zone = this.#zone;
    this.#soaGiven = true;
    zone.name(0, this.owner);
    this.at = zone.soa();
    this.length = zone.value;
    this.type = TYPE.SOA;
    this.ttl = zone.ttl;
    return true;
  }

  #take(at: number): number {
    this.at = this.#zone.varint(at);
    this.length = this.#zone.value;
    return this.at + this.length;
  }
}
