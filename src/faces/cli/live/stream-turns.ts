/**
 * Divides this thread's time among the streams that are read. Without it, a server that sends without end would delay
 * the other servers and the views. So would a stream that decompresses to a thousand times its size.
 */
import type { Clock } from '../../../server/base/clock.ts';

/** The period in which time is divided, in milliseconds. It is a fraction of the 5 s between a server's messages. */
const PERIOD_MS = 1000;
/** CPU time for all streams together in a period, in milliseconds. The rest is for findings and views. */
const BUDGET_MS = 700;

export interface StreamTurnsParts {
  readonly clock: Clock;
  /** CPU time of this thread, in milliseconds. */
  cpuMs(): number;
}

export class StreamTurns {
  readonly #parts: StreamTurnsParts;
  #beganMs = -Infinity;
  #usedMs = 0;
  /** Streams that have used time in this period. */
  #active = 0;
  #period = 0;

  constructor(parts: StreamTurnsParts) {
    this.#parts = parts;
  }

  open(): StreamTurn {
    let period = -1;
    let ownMs = 0;
    return {
      run: (work) => {
        const { clock, cpuMs } = this.#parts;
        const before = cpuMs();
        work();
        const used = Math.max(0, cpuMs() - before);
        const now = clock.now();
        if (now - this.#beganMs >= PERIOD_MS) {
          [this.#beganMs, this.#usedMs, this.#active] = [now, 0, 0];
          this.#period++;
        }
        if (period !== this.#period) {
          [period, ownMs] = [this.#period, 0];
          this.#active++;
        }
        ownMs += used;
        this.#usedMs += used;
        const isTooMuch = this.#usedMs >= BUDGET_MS && ownMs >= this.#usedMs / this.#active;
        return isTooMuch ? this.#beganMs + PERIOD_MS - now : 0;
      },
    };
  }
}

/** A stream's share of the time. */
export interface StreamTurn {
  /**
   * Processes a piece of the stream.
   * @returns the milliseconds to wait before reading the next one. 0 unless all streams together have used up their
   *   time and this one has used more than an even share
   */
  run(work: () => void): number;
}

/** Divides the time of the thread that calls this. */
export function turnsOfThread(clock: Clock): StreamTurns {
  return new StreamTurns({
    clock,
    cpuMs() {
      const { user, system } = process.threadCpuUsage();
      return (user + system) / 1000;
    },
  });
}
