/** The number of queries that wait at a server, computed from the times of queries and replies. */
import { countUpTo } from './sorted-times.ts';

/** A query that waits from one time to another, milliseconds since 1970. */
export interface QueryWait {
  readonly sentMs: number;
  readonly repliedMs: number;
}

export class WaitingAtServer {
  readonly #sent: readonly number[];
  readonly #replied: readonly number[];

  constructor(queries: readonly QueryWait[]) {
    this.#sent = queries.map(({ sentMs }) => sentMs).toSorted((one, other) => one - other);
    this.#replied = queries.map(({ repliedMs }) => repliedMs).toSorted((one, other) => one - other);
  }

  /** @param ms milliseconds since 1970 */
  at(ms: number): number {
    return countUpTo(this.#sent, ms) - countUpTo(this.#replied, ms);
  }

  get most(): number {
    return this.#sent.reduce((most, ms) => Math.max(most, this.at(ms)), 0);
  }
}
