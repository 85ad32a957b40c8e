/**
 * Limits how many reports reach the API server. Each one changes an object, and a version 2 run may report any number
 * of times.
 */
import type { Clock } from '../../server/base/clock.ts';

/** Limit of queued reports per check. */
const WAITING_MAX = 4;
/** Changes allowed per check: the burst size, and the rate per second after it. */
const BURST = 10;
const PER_SECOND = 1;
/** Limit of tracked checks. Quiet ones are dropped. */
const REMEMBERED_MAX = 4096;

interface PodTurn {
  last: Promise<unknown>;
  waiting: number;
  left: number;
  at: number;
}

/** Processes each check's reports one at a time, at a rate the API server can sustain. */
export class ReportGate {
  readonly #clock: Clock;
  readonly #turns = new Map<string, PodTurn>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Queues the work and passes on its errors.
   * @param key the run that the report belongs to
   * @returns null if the run has sent too many reports
   */
  async pass<T>(key: string, work: () => Promise<T>): Promise<T | null> {
    const turn = this.#turnOf(key);
    if (turn.waiting >= WAITING_MAX || turn.left < 1) return null;
    turn.left--;
    turn.waiting++;
    const mine = turn.last.then(work);
    turn.last = mine.catch(() => undefined);
    try {
      return await mine;
    } finally {
      turn.waiting--;
    }
  }

  #turnOf(key: string): PodTurn {
    const now = this.#clock.now();
    let turn = this.#turns.get(key);
    if (turn === undefined) {
      if (this.#turns.size >= REMEMBERED_MAX) this.#forgetQuiet(now);
      turn = { last: Promise.resolve(), waiting: 0, left: BURST, at: now };
      this.#turns.set(key, turn);
    }
    turn.left = Math.min(BURST, turn.left + ((now - turn.at) / 1000) * PER_SECOND);
    turn.at = now;
    return turn;
  }

  #forgetQuiet(now: number): void {
    for (const [key, { waiting, at }] of this.#turns)
      if (waiting === 0 && now - at > (BURST / PER_SECOND) * 1000) this.#turns.delete(key);
  }
}
