/**
 * Ends the process when its threads cannot. A hanging event loop receives no signals and runs no timers, and
 * `process.exit` waits for every worker. The kernel does it instead. Without a foreign function interface none of this
 * is available, and a hanging process must be killed from outside.
 */
import { libc, LibcMissing } from './libc.ts';
import { Memory } from './memory.ts';

/**
 * Exit code of a process ended by the kernel's timer: the signal number.
 * @public
 */
export const EXIT_TIMED_OUT = 14;

const ITIMER_REAL = 0;
/**
 * Size of struct itimerval, and the offset of its value in 32-bit words. The interval before it is 0, so the timer
 * fires once.
 */
const TIMER_SIZE = 32;
const TIMER = { SECONDS: 4, MICROSECONDS: 6 } as const;
const SIGTERM = 15;
const POLLIN = 1;

/**
 * Ends the process after this time, whatever its threads are doing. An earlier deadline stays in effect.
 * @returns false if not available
 */
export function endProcessWithin(limitMs: number): boolean {
  try {
    libc().exitOnAlarm();
    const beforeMs = setTimer(limitMs);
    if (beforeMs > 0 && beforeMs < limitMs) setTimer(beforeMs);
    return true;
  } catch (error) {
    if (error instanceof LibcMissing) return false;
    throw error;
  }
}

/** @returns the time left on the previous timer, or 0 */
function setTimer(ms: number): number {
  const memory = new Memory(2 * TIMER_SIZE);
  const { address, words } = memory;
  words[TIMER.SECONDS] = Math.floor(ms / 1000);
  words[TIMER.MICROSECONDS] = Math.floor(ms % 1000) * 1000;
  libc().setitimer(ITIMER_REAL, address, address + TIMER_SIZE);
  const before = TIMER_SIZE / 4;
  const beforeMs =
    words[before + TIMER.SECONDS]! * 1000 + words[before + TIMER.MICROSECONDS]! / 1000;
  memory.free();
  return beforeMs;
}

/** Ends the process at once, without running handlers or flushing output. */
export function endProcessNow(code: number): never {
  try {
    libc()._exit(code);
  } catch {
    // Without a foreign function interface, this ends the process even if a thread hangs and it is process 1 of a
    // container.
  }
  process.abort();
}

/** Memory shared by all threads: the descriptor that reports SIGTERM, and the time limit for an orderly shutdown. */
export type Termination = Int32Array<SharedArrayBuffer>;

/** A descriptor that is readable once SIGTERM has arrived, plus one; 0: not created yet; -1: being created. */
const DESCRIPTOR = 0;
const LIMIT_MS = 1;

/** @param limitMs initial time limit for an orderly shutdown */
export function makeTermination(limitMs = 5000): Termination {
  const termination = new Int32Array(new SharedArrayBuffer(8));
  allowForTermination(termination, limitMs);
  return termination;
}

/** Sets the time limit for an orderly shutdown. */
export function allowForTermination(termination: Termination, limitMs: number): void {
  Atomics.store(termination, LIMIT_MS, Math.min(Math.max(1, limitMs), 0x7fff_ffff));
}

/**
 * Handles SIGTERM on a thread other than the main one, which may hang. Once the signal arrives, the process ends within
 * its time limit. Must be called periodically. libuv reports a signal to every loop that requests it. A loop that never
 * runs therefore requests SIGTERM, and its descriptor stays readable once the signal has arrived. It is created once
 * and outlives its thread.
 */
export class TerminationWatch {
  readonly #termination: Termination;
  readonly #poll = new Memory(8);
  #heard = false;

  /** @throws LibcMissing */
  constructor(termination: Termination) {
    this.#termination = termination;
    if (Atomics.compareExchange(termination, DESCRIPTOR, 0, -1) !== 0) return;
    Atomics.store(termination, DESCRIPTOR, libc().signalDescriptor(SIGTERM) + 1);
  }

  look(): void {
    const fd = Atomics.load(this.#termination, DESCRIPTOR) - 1;
    if (this.#heard || fd < 0) return;
    const { words, address } = this.#poll;
    words[0] = fd;
    words[1] = POLLIN;
    if (libc().poll(address, 1, 0) <= 0) return;
    this.#heard = true;
    endProcessWithin(Atomics.load(this.#termination, LIMIT_MS));
  }
}
