/** The number of queries that wait at a server, computed from its (late) replies. */
import { countUpTo } from './sorted-times.ts';
import type { LateReply } from './observations.ts';

export class WaitingAtServer {
  readonly #sent: readonly number[];
  readonly #replied: readonly number[];

  constructor(late: readonly Pick<LateReply, 'sentMs' | 'repliedMs'>[]) {
    this.#sent = late.map(({ sentMs }) => sentMs).toSorted((one, other) => one - other);
    this.#replied = late.map(({ repliedMs }) => repliedMs).toSorted((one, other) => one - other);
  }

  /** @param ms milliseconds since 1970 */
  at(ms: number): number {
    return countUpTo(this.#sent, ms) - countUpTo(this.#replied, ms);
  }

  /** The highest number at any time. */
  get most(): number {
    return this.#sent.reduce((most, ms) => Math.max(most, this.at(ms)), 0);
  }
}
