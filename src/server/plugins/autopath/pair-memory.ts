/** Remembers briefly how the first query of an A/AAAA pair ended, so that both get the same result. */
import type { Clock } from '../../base/clock.ts';
import { hashBytes } from '../../base/hash.ts';
import { FLAG, TYPE } from '../../wire/iana.ts';
import type { Query } from '../../transport/query.ts';

/** Resolvers send all queries in a lookup at the same time and repeat them for at most five seconds. */
const PAIR_MS = 5000;
const SLOTS = 4096;

/** The outcome of a pair's first query: unknown, NXDOMAIN, or the index of the candidate that answered. */
export const UNKNOWN = -2;
/** The query was answered with NXDOMAIN. */
export const MISSING = -1;

/**
 * Remembers for a few seconds whether the first query in a pair found the name, so that the second gets the same
 * result. A pair is an A and an AAAA query for one name from one client. A resolver that gets NXDOMAIN for only one of
 * them ends its search without a result. The table has a fixed size of 64 KB. A pair is forgotten when another pair
 * needs its slot, which is harmless.
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
    // A repeated type means a new lookup or a retransmission, so there is no outcome to match.
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

/** Returns one bit for each type that resolvers query in parallel, or 0 for any other type. */
function typeBit(type: number): number {
  if (type === TYPE.A) return 1;
  if (type === TYPE.AAAA) return 2;
  return type === TYPE.HTTPS ? 4 : 0;
}

/**
 * Hashes the client address, name and DNSSEC flags into 30 bits. The port is excluded, because some resolvers use a
 * separate socket for each type.
 */
function keyOf(query: Query): number {
  const asked = query.hash ^ (query.flags & FLAG.CD) ^ (query.dnssecOk ? 1 : 0);
  const end = query.peerAt + (query.family === 4 ? 4 : 16);
  return hashBytes(query.peer, query.peerAt, end, asked) & 0x3fffffff;
}
