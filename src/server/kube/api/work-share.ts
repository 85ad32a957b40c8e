/** Limits the share of CPU time spent on reading lists from the API server. */
import type { Clock } from '../../base/clock.ts';
import { cpuLimit } from '../../runtime/cpu-limit.ts';

export interface WorkShareParts {
  readonly clock: Clock;
  /** CPU time of this thread, in milliseconds. */
  cpuMs(): number;
  /** Returns the number of CPUs the process may use, or Infinity if there is no limit. Called occasionally. */
  processors(): number;
}

/** Share of one CPU if nothing limits the process. */
const MOST = 0.5;
/** Share of the process's CPU limit. The workers and the garbage collector need the rest. */
const OF_LIMIT = 0.25;
/** The smallest share. With less, a list would take minutes, and an API server does not wait that long. */
const LEAST = 0.05;
/** Milliseconds of work that is never delayed. Single changes stay far below this. */
const BURST_MS = 3;
/**
 * Maximum excess, in milliseconds, that a pause compensates for, whether it came from this work or from other work on
 * the thread.
 */
const DEBT_MS = 20;
/** Milliseconds for which a result of `processors` is used. */
const LIMIT_MS = 1000;

/**
 * Limits long work on this thread to a share of a CPU, by doing it in small pieces with pauses in between. Reading a
 * complete list takes seconds of CPU time. Without pauses, it would delay the workers that share the CPUs. In a
 * container with a CPU limit, the kernel would also stop all threads for the rest of the period.
 */
export class WorkShare {
  readonly #parts: WorkShareParts;
  #share = MOST;
  #askedAt = -Infinity;
  #at: number;
  #cpuMs: number;
  /** CPU time until a pause is due, in milliseconds. Negative if too much has been used. */
  #allowanceMs = BURST_MS;

  constructor(parts: WorkShareParts) {
    this.#parts = parts;
    this.#at = parts.clock.now();
    this.#cpuMs = parts.cpuMs();
  }

  /**
   * Call this after each piece of work.
   * @returns the number of milliseconds to pause before the next one
   */
  restMs(): number {
    const now = this.#parts.clock.now();
    const cpuMs = this.#parts.cpuMs();
    if (now - this.#askedAt > LIMIT_MS) {
      this.#share = Math.max(LEAST, Math.min(MOST, this.#parts.processors() * OF_LIMIT));
      this.#askedAt = now;
    }
    const gained = (now - this.#at) * this.#share;
    const used = cpuMs - this.#cpuMs;
    this.#allowanceMs = Math.max(-DEBT_MS, Math.min(BURST_MS, this.#allowanceMs + gained) - used);
    this.#at = now;
    this.#cpuMs = cpuMs;
    return this.#allowanceMs >= 0 ? 0 : -this.#allowanceMs / this.#share;
  }
}

/** Creates this thread's share, measured by the system's count of its CPU time. */
export function shareOfThread(clock: Clock): WorkShare {
  return new WorkShare({
    clock,
    cpuMs() {
      const { user, system } = process.threadCpuUsage();
      return (user + system) / 1000;
    },
    processors: cpuLimit,
  });
}
