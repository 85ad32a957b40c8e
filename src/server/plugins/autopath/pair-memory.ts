/** Remembers briefly how the first query of an A/AAAA pair ended, so that both get the same result. */
import type { Clock } from '../../base/clock.ts';
import { hashBytes } from '../../base/hash.ts';
import { FLAG, TYPE } from '../../wire/iana.ts';
import type { Query } from '../../transport/query.ts';

/** Resolvers send one lookup's queries at the same time and repeat them for at most five seconds. */
const PAIR_MS = 5000;
const SLOTS = 4096;

/** Results for a pair's first query: unknown, NXDOMAIN, or the index of the candidate that answered. */
export const UNKNOWN = -2;
/** The query was answered with NXDOMAIN. */
export const MISSING = -1;

/**
 * Stores for a few seconds whether the first query of a pair found the name, so that the second one
 * has the same result. A pair is A and AAAA of one name, from one client. A resolver that gets
 * NXDOMAIN for only one type ends its search without a result.
 *
 * The table has a fixed size of 64 KB. A pair is forgotten when another one takes its slot, which is
 * harmless.
 */
export class PairMemory {
  readonly #clock: Clock;
  readonly #keys = new Int32Array(SLOTS);
  readonly #names = new Int32Array(SLOTS);
  /** Clock time in whole milliseconds. */
  readonly #times = new Float64Array(SLOTS).fill(-PAIR_MS - 1);
  /** The pair's outcome: MISSING or a candidate index. */
  readonly #outcomes = new Int8Array(SLOTS);
  readonly #types = new Uint8Array(SLOTS);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  outcome(query: Query): number {
    const type = typeBit(query.type);
    if (type === 0) return UNKNOWN;
    const key = keyOf(query);
    const slot = key & (SLOTS - 1);
    if (this.#keys[slot] !== key || this.#names[slot] !== query.hash) return UNKNOWN;
    if (this.#clock.now() - this.#times[slot]! > PAIR_MS) return UNKNOWN;
    // The same type again means a new lookup or a retransmission, so there is no outcome to match.
    return (this.#types[slot]! & type) === 0 ? this.#outcomes[slot]! : UNKNOWN;
  }

  note(query: Query, outcome: number): void {
    const type = typeBit(query.type);
    if (type === 0) return;
    const key = keyOf(query);
    const slot = key & (SLOTS - 1);
    const joins = this.outcome(query) !== UNKNOWN;
    this.#types[slot] = joins ? this.#types[slot]! | type : type;
    if (joins) return;
    this.#keys[slot] = key;
    this.#names[slot] = query.hash;
    this.#times[slot] = this.#clock.now();
    this.#outcomes[slot] = Math.min(outcome, 127);
  }
}

/** Returns a bit for each type that resolvers query in parallel, and 0 for others. */
function typeBit(type: number): number {
  if (type === TYPE.A) return 1;
  if (type === TYPE.AAAA) return 2;
  return type === TYPE.HTTPS ? 4 : 0;
}

/**
 * Hashes the client address, name and DNSSEC flags into 30 bits. The port is excluded, because some resolvers use a
 * socket per type.
 */
function keyOf(query: Query): number {
  const asked = query.hash ^ (query.flags & FLAG.CD) ^ (query.dnssecOk ? 1 : 0);
  const end = query.peerAt + (query.family === 4 ? 4 : 16);
  return hashBytes(query.peer, query.peerAt, end, asked) & 0x3fffffff;
}
