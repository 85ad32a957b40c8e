/** Lists and removes entries in a worker's cache on request. */
import { holdsAt } from '../../base/copy-bytes.ts';
import type { Clock } from '../../base/clock.ts';
import { className, rcodeName, typeName } from '../../wire/iana.ts';
import { printName } from '../../wire/name.ts';
import type { EntryReport, Inspected, InspectionOrder } from './cache-messages.ts';
import type { Sources } from './sources.ts';
import { DENIAL } from './entries.ts';
import type { Store } from './store.ts';

/** Number of slots to examine before yielding to queries, which takes about ten microseconds. */
const SLICE = 512;

/** Lists or removes the entries for a name and, if requested, those below it. Queries are answered in between. */
export class Inspection {
  readonly #store: Store;
  readonly #sources: Sources;
  readonly #clock: Clock;

  constructor(store: Store, sources: Sources, clock: Clock) {
    this.#store = store;
    this.#sources = sources;
    this.#clock = clock;
  }

  async run({ kind, id, name, below, limit }: InspectionOrder): Promise<Inspected> {
    const store = this.#store;
    const size = store.counts[0] + store.counts[1];
    const entries: EntryReport[] = [];
    let found = 0;
    for (let slot = 0; slot < store.slots; slot++) {
      if (slot % SLICE === SLICE - 1) await new Promise((resolve) => setImmediate(resolve));
      if (!this.#fits(slot, name, below)) continue;
      found++;
      if (kind === 'flush') store.remove(slot);
      else if (entries.length < limit) entries.push(this.#report(slot));
    }
    return { kind: 'inspected', id, found, entries, size };
  }

  /**
   * True if the slot's entry is for this name or, with `below`, for a name under it. Names are stored in lower case.
   */
  #fits(slot: number, name: Uint8Array, below: boolean): boolean {
    let at = this.#store.nameAt(slot);
    if (at < 0) return false;
    const bytes = this.#store.bytesAt(slot);
    if (!below) return holdsAt(bytes, at, name);
    for (;;) {
      if (holdsAt(bytes, at, name)) return true;
      const label = bytes[at]!;
      if (label === 0) return false;
      at += label + 1;
    }
  }

  #report(slot: number): EntryReport {
    const store = this.#store;
    const { message, type, class: number, variant, whole } = store.at(slot)!;
    return {
      name: printName(message, 12),
      type: whole ? 'ANY' : typeName(type),
      class: className(number),
      dnssecOk: (variant & 1) !== 0,
      checkingDisabled: (variant & 2) !== 0,
      rcode: rcodeName(store.rcode(slot)),
      half: store.half(slot) === DENIAL ? 'denial' : 'success',
      ttl: Math.ceil((store.end(slot) - this.#clock.now()) / 1000),
      storedTtl: store.ttl(slot),
      hits: store.uses(slot),
      from: this.#sources.text(store.source(slot)),
      bytes: message.length,
    };
  }
}
