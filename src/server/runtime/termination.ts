/**
 * Ends the process if its threads cannot: an event loop that hangs gets no signals and runs no
 * timers, and `process.exit` waits for every worker. Here the kernel does it. Without a foreign
 * function interface none of this is available, and a hanging process must be killed from outside.
 */
import { libc, LibcMissing } from './libc.ts';
import { Memory } from './memory.ts';

/**
 * Exit code of a process that was ended by the kernel's timer: the number of its signal.
 * @public
 */
export const EXIT_TIMED_OUT = 14;

const ITIMER_REAL = 0;
/**
 * Bytes of a struct itimerval, and where its value is, in 32-bit words; the interval before it is
 * 0: once.
 */
const TIMER_SIZE = 32;
const TIMER = { SECONDS: 4, MICROSECONDS: 6 } as const;
const SIGTERM = 15;
const POLLIN = 1;

/**
 * Ends the process after this time, whatever its threads do. An earlier, shorter time stays.
 * @returns false: not available
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

/** @returns the rest of the time that was set before; 0: none */
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

/** Ends the process at once, without running or flushing anything. */
export function endProcessNow(code: number): never {
  try {
    libc()._exit(code);
  } catch {
    // Without a foreign function interface this is what ends it though a thread hangs, even as
    // process 1 of a container.
  }
  process.abort();
}

/**
 * Memory that all threads share: where SIGTERM can be noticed, and how long an orderly end may
 * take.
 */
export type Termination = Int32Array<SharedArrayBuffer>;

/** Descriptor that is readable once SIGTERM has come, plus one; 0: not made yet; -1: being made. */
const DESCRIPTOR = 0;
const LIMIT_MS = 1;

/** @param limitMs the initial limit of an orderly end */
export function makeTermination(limitMs = 5000): Termination {
  const termination = new Int32Array(new SharedArrayBuffer(8));
  allowForTermination(termination, limitMs);
  return termination;
}

/** Sets how long an orderly end may take. */
export function allowForTermination(termination: Termination, limitMs: number): void {
  Atomics.store(termination, LIMIT_MS, Math.min(Math.max(1, limitMs), 0x7fff_ffff));
}

/**
 * Handles SIGTERM on a thread other than the main one, which may hang: from then on the process
 * ends within its time limit. To be called periodically. libuv reports a signal to every loop that
 * requests it. So a loop that never runs requests SIGTERM, and its descriptor stays readable when
 * the signal has arrived. It is made once, and outlives its thread.
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
