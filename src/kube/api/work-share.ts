import type { Clock } from '../../base/clock.ts';
import { processorLimit } from '../../linux/processor-limit.ts';

/** What a share is kept with. */
export interface WorkShareParts {
  readonly clock: Clock;
  /** Processor time that this thread has used, milliseconds. */
  cpuMs(): number;
  /** How many processors the process may use at most; asked now and then. Infinity: as many as there are. */
  processors(): number;
}

/** Of one processor, where nothing limits the process. */
const MOST = 0.5;
/** Of what the process may use: the workers and the collector of garbage need the rest. */
const OF_LIMIT = 0.25;
/** Less would take minutes, which an API server does not wait for. */
const LEAST = 0.05;
/** Work up to this much is never delayed, milliseconds: changes one by one are far below it. */
const BURST_MS = 3;
/** More than this is not made up for, be it of this work or of what else the thread did in between, milliseconds. */
const DEBT_MS = 20;
/** How long a limit is taken to hold, milliseconds. */
const LIMIT_MS = 1000;

/**
 * Keeps long work on this thread below a share of a processor, in small pieces with rests between them. A list of everything takes
 * seconds of processor time; taken at a stretch it would hold up the workers that share the processors, and within a
 * container's limit it would have the system stop all threads for the rest of the period.
 */
export class WorkShare {
  readonly #parts: WorkShareParts;
  #share = MOST;
  #askedAt = -Infinity;
  #at: number;
  #cpuMs: number;
  /** What may be used before a rest is due, milliseconds; negative: too much has been used. */
  #allowanceMs = BURST_MS;

  constructor(parts: WorkShareParts) {
    this.#parts = parts;
    this.#at = parts.clock.now();
    this.#cpuMs = parts.cpuMs();
  }

  /** To be asked after a piece of work. @returns how long to rest before the next, milliseconds */
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

/** The share of this thread, as the system counts its time. */
export function shareOfThread(clock: Clock): WorkShare {
  return new WorkShare({
    clock,
    cpuMs() {
      const { user, system } = process.threadCpuUsage();
      return (user + system) / 1000;
    },
    processors: processorLimit,
  });
}
