/** Memory that starting has used, given back to the system. */
import { every, type Clock } from './clock.ts';

/** The first queries come at once, and many of them: they are not kept waiting. */
const AFTER_MS = 1000;
/** By then the other threads have collected, too. */
const THEN_MS = 500;

/**
 * Gives back what starting has left behind (parsed files, functions that ran once), a second or `afterMs` from now. To be called when a
 * thread has begun to serve, or has done what it does seldom.
 * @param then runs when all threads that began together have done so
 */
export function settleMemory(
  clock: Clock,
  then: () => void = () => undefined,
  afterMs: number = AFTER_MS,
): void {
  clock.after(afterMs, () => {
    collect('last-resort');
    clock.after(THEN_MS, then);
  });
}

/** Collects this thread's memory now, which holds it up for some 8 ms; what is compiled stays. */
export function collectMemory(): void {
  collect('regular');
}

type Collector = (options: {
  readonly type: 'major';
  readonly execution: 'sync';
  readonly flavor: 'regular' | 'last-resort';
}) => void;

function collect(flavor: 'regular' | 'last-resort'): void {
  const { gc } = globalThis as { gc?: Collector };
  (gc ?? collector())?.({ type: 'major', execution: 'sync', flavor });
}

/** Threads that collect at the same moment take the flag from each other; so often in a row they do not. */
const ATTEMPTS = 10;

/**
 * The runtime's collector, which only a context that begins while the flag is set has. A runtime that is started with another flag than its
 * own modules were compiled with compiles them anew, in each thread: docs/decisions/dist.md. The flag is that of the whole process: another
 * thread may put it back before the context begins, and then this one has no collector and tries again.
 */
function collector(): Collector | undefined {
  const { setFlagsFromString } = process.getBuiltinModule('node:v8');
  const { createContext, constants, runInContext } = process.getBuiltinModule('node:vm');
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    setFlagsFromString('--expose-gc');
    const context = createContext(constants.DONT_CONTEXTIFY);
    setFlagsFromString('--no-expose-gc');
    const found = runInContext('globalThis.gc', context) as Collector | undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

/** How often a thread looks at the memory of its process. */
const LOOK_MS = 15_000;
/** What is worth a collection, bytes: it holds up the thread for some 15 ms. */
const GROWTH = 2 * 1024 * 1024;
/** A thread that is busier than this has better things to do. */
const BUSY = 0.1;

/**
 * Goes on doing so for the life of this thread, whenever the process has grown by some MiB since the last time and there is little to do: for a program that shares
 * a machine with others, whose memory counts more than a pause now and then.
 * @param then runs after each
 */
export function keepMemorySettled(clock: Clock, then: () => void = () => undefined): void {
  const { rss } = process.memoryUsage;
  const { performance } = globalThis;
  let floor = rss();
  let before = performance.eventLoopUtilization();
  every(clock, LOOK_MS, () => {
    const { utilization } = performance.eventLoopUtilization(before);
    before = performance.eventLoopUtilization();
    if (utilization > BUSY) return;
    const size = rss();
    floor = Math.min(floor, size);
    if (size - floor < GROWTH) return;
    settleMemory(clock, () => {
      then();
      floor = rss();
    });
  });
}
