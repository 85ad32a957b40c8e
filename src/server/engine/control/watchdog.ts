/** Detects workers that hang. */
import { every, type Clock, type Timer } from '../../base/clock.ts';
import { threadState, type ThreadState } from '../../runtime/thread-state.ts';
import { beatsOf, hasLoaded, isBuilding, threadOf, type Pulse } from '../contract/pulse.ts';

export interface WatchedWorker {
  /** Null if it runs on this thread, where it cannot be watched. */
  readonly pulse: Pulse | null;
}

/** The length of time a worker may be blocked, and the reaction after that. */
export interface WatchdogParts<T extends WatchedWorker> {
  readonly clock: Clock;
  /** Milliseconds after which a worker with a blocked event loop is considered hung. 0 turns this off. */
  readonly hangMs: number;
  /** Called once for each worker that hangs. It is no longer watched after that. */
  readonly onHang: (worker: T) => void;
  /** Returns the state of a thread; replaced in tests. */
  readonly stateOf?: (thread: number) => ThreadState | null;
}

const CHECK_MS = 200;
/** Factor by which this time is extended while building a configuration or loading code. */
const BUILDING = 10;
/** Share of the time for which a hanging worker must have used the CPU, unless it is waiting in the kernel. */
const BUSY = 0.4;

interface WorkerObservation {
  beats: number;
  /**
   * The time for which the beats have not changed, counting only the time when this thread was running. -1 means that
   * they have changed.
   */
  stillMs: number;
  /** The worker's CPU time when its beats were first found to be unchanged. */
  cpuMs: number;
  /**
   * The kernel wait that the worker was in at the last check, and its duration so far. Null if the worker was running.
   */
  wait: number | null;
  waitMs: number;
}

/**
 * Detects workers that hang in an endless loop, or in a call that does not return. A worker is not to blame if the
 * machine is too busy to run it. Time during which the watchdog itself did not run (a suspended machine, a stopped
 * process, a CPU limit) therefore does not count. A worker that could not get the CPU is given more time. It hangs only
 * if it was running all the time, or is stuck in one and the same wait in the kernel.
 */
export class Watchdog<T extends WatchedWorker> {
  readonly #parts: WatchdogParts<T>;
  readonly #found = new Map<T, WorkerObservation>();
  #timer: Timer | null = null;
  #checkedAt = 0;

  constructor(parts: WatchdogParts<T>) {
    this.#parts = parts;
  }

  watch(worker: T): void {
    const { clock, hangMs } = this.#parts;
    if (worker.pulse === null || hangMs === 0) return;
    this.#found.set(worker, { beats: 0, stillMs: -1, cpuMs: 0, wait: null, waitMs: 0 });
    this.#checkedAt = clock.now();
    this.#timer ??= every(clock, CHECK_MS, () => this.#check());
  }

  forget(worker: T): void {
    this.#found.delete(worker);
    if (this.#found.size > 0) return;
    this.#timer?.cancel();
    this.#timer = null;
  }

  #check(): void {
    const now = this.#parts.clock.now();
    const passedMs = Math.min(now - this.#checkedAt, 2 * CHECK_MS);
    this.#checkedAt = now;
    for (const [worker, found] of [...this.#found]) {
      if (!this.#hangs(worker, found, passedMs)) continue;
      this.forget(worker);
      this.#parts.onHang(worker);
    }
  }

  #hangs(worker: T, found: WorkerObservation, passedMs: number): boolean {
    const beats = beatsOf(worker.pulse!);
    if (beats !== found.beats) {
      found.beats = beats;
      found.stillMs = -1;
      return false;
    }
    const { stateOf = threadState, hangMs } = this.#parts;
    const state = stateOf(threadOf(worker.pulse!));
    if (found.stillMs < 0) {
      found.stillMs = 0;
      found.cpuMs = state?.cpuMs ?? 0;
      found.wait = waitOf(state);
      found.waitMs = 0;
      return false;
    }
    found.stillMs += passedMs;
    const wait = waitOf(state);
    found.waitMs = wait !== null && wait === found.wait ? found.waitMs + passedMs : 0;
    found.wait = wait;
    const patience = hasLoaded(worker.pulse!) && !isBuilding(worker.pulse!) ? 1 : BUILDING;
    // When it was found unchanged, the last beat was up to two checks old, and this check may be one check late.
    const limitMs = hangMs * patience - 3 * CHECK_MS;
    if (found.stillMs < limitMs) return false;
    if (state === null || found.waitMs >= limitMs) return true;
    if (state.cpuMs - found.cpuMs >= BUSY * limitMs) return true;
    // It is neither in a single call nor in a loop. It sometimes waits for other threads, which may lack CPU time too.
    return !state.runnable && found.stillMs >= BUILDING * limitMs;
  }
}

function waitOf(state: ThreadState | null): number | null {
  return state === null || state.runnable ? null : state.waits;
}
