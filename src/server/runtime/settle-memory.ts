/** Returns memory to the system that was only needed for a while, such as that of starting. */
import { every, type Clock } from '../base/clock.ts';

/**
 * The first queries often arrive in large numbers right after the start, and must not wait for a
 * collection. Milliseconds.
 */
const AFTER_MS = 1000;
/** The time after which the other threads have collected as well, in milliseconds. */
const THEN_MS = 500;

/**
 * Collects what starting has left behind (parsed files, functions that ran once) after a second, or
 * after `afterMs`. Call it when a thread begins to serve, or after rare work.
 * @param then runs when all threads that began together have collected
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

/** Collects this thread's memory now, which blocks it: see `collectDropped`. Compiled code is kept. */
export function collectMemory(): void {
  collect('regular');
}

/**
 * After this many bytes of short-lived memory a collection is run: 64 of the largest DNS messages.
 */
const PASSING_MAX = 4 * 1024 * 1024;
let passing = 0;
let young: CollectGarbage | undefined;

/**
 * Counts short-lived memory outside the JavaScript heap, such as that of a forwarded reply. The
 * runtime hardly considers it, because only small objects refer to it, and a hundred megabytes pile
 * up before there are enough of these objects for a collection. So after every few megabytes the
 * young generation is collected, which takes a millisecond.
 */
export function passedThrough(bytes: number): void {
  passing += bytes;
  if (passing < PASSING_MAX) return;
  passing = 0;
  young ??= collector();
  young?.({ type: 'minor', execution: 'sync' });
}

/** Bytes by which a thread may grow before what it has dropped is collected, in a container of 192 MiB and less. */
const DROPPED_MAX = 3 * 1024 * 1024;
let floor = Infinity;

/**
 * Bytes by which a thread that answers may grow: a 64th of what the container may take. Without a limit it is left to the
 * runtime, which collects in small steps, so that no answer waits.
 * @param limit of the process, bytes; Infinity: none
 */
export function droppedMax(limit: number): number {
  return Math.max(DROPPED_MAX, limit / 64);
}

/**
 * To be called when something large has been dropped, as a configuration that another has replaced. The runtime collects such things when the
 * heap has doubled, and buffers that they hold hardly count: tens of megabytes a thread pile up when one follows another.
 *
 * It blocks the thread. On a worker that answers for 10 000 services with 100 000 endpoints (35 MiB) that is 14 ms where threads of the
 * runtime help on other processors, and 20 to 35 ms on a single one (measured on a busy machine; 5 to 7 ms are the thread's own).
 * @param most bytes that may have been dropped before
 * @returns whether it was collected
 */
export function collectDropped(most: number = DROPPED_MAX): boolean {
  const used = usedBytes();
  floor = Math.min(floor, used);
  if (used - floor < most) return false;
  collect('regular');
  floor = usedBytes();
  return true;
}

/** The period between a thread's checks for short memory, milliseconds. */
const SHORT_MS = 500;
/** A collection is followed by so many times as long without one: memory may be short for good. */
const REST = 100;

/**
 * Collects for the rest of this thread's life while memory is short and this thread has grown by 3
 * MiB. The runtime waits until a thread's heap is nearly full, and knows nothing of the others: four
 * workers that each keep ten megabytes of queries that have been answered end the process.
 * @param isShort whether the process takes nearly all memory that it may
 * @param then runs after each collection, whose time counts as well
 * @param collects what there is, if it is enough; returns whether it was
 */
export function collectWhileShort(
  clock: Clock,
  isShort: () => boolean,
  then: () => void,
  collects: () => boolean = collectDropped,
): void {
  let restsUntil = -Infinity;
  every(clock, SHORT_MS, () => {
    const begin = clock.now();
    if (begin < restsUntil || !isShort() || !collects()) return;
    then();
    const end = clock.now();
    restsUntil = end + REST * (end - begin);
  });
}

/** Bytes of this thread's objects and of the buffers that they hold. */
function usedBytes(): number {
  const statistics = process.getBuiltinModule('node:v8').getHeapStatistics();
  return statistics.used_heap_size + statistics.external_memory;
}

type CollectGarbage = (options: {
  readonly type: 'major' | 'minor';
  readonly execution: 'sync';
  readonly flavor?: 'regular' | 'last-resort';
}) => void;

function collect(flavor: 'regular' | 'last-resort'): void {
  collector()?.({ type: 'major', execution: 'sync', flavor });
}

/** The number of attempts if another thread has put the flag back; see `collector`. */
const ATTEMPTS = 10;

/**
 * The runtime's garbage collector as a function. Only a context that is created while `--expose-gc`
 * is set has it. The flag is not given at the start, because the runtime would then compile its own
 * modules anew in each thread (docs/decisions/dist.md). It belongs to the whole process: another
 * thread may put it back before the context is created, in which case this context has no collector
 * and another one is tried.
 */
function collector(): CollectGarbage | undefined {
  const { gc } = globalThis as { gc?: CollectGarbage };
  if (gc !== undefined) return gc;
  const { setFlagsFromString } = process.getBuiltinModule('node:v8');
  const { createContext, constants, runInContext } = process.getBuiltinModule('node:vm');
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    setFlagsFromString('--expose-gc');
    const context = createContext(constants.DONT_CONTEXTIFY);
    setFlagsFromString('--no-expose-gc');
    const found = runInContext('globalThis.gc', context) as CollectGarbage | undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The period between a thread's checks of the memory of its process, milliseconds. */
const LOOK_MS = 15_000;
/**
 * By how many bytes the process has to grow to make a collection worthwhile, which blocks the
 * thread for some 15 ms: `some` for programs with a tight memory limit, `much` for all others.
 */
export const GROWTH: Readonly<Record<'some' | 'much', number>> = {
  some: 2 * 1024 * 1024,
  much: 24 * 1024 * 1024,
};
/** A thread that is busier than this share of its time does not collect. */
const BUSY = 0.1;

/**
 * Collects for the rest of this thread's life, whenever the process has grown by `growth` since the
 * last collection and the thread is not busy. An idle thread would otherwise keep the memory of a
 * flood of queries, as it has no reason to collect.
 * @param growth of the process, bytes
 * @param then runs after each collection
 * @param rss memory of the process in bytes; for tests
 */
export function keepMemorySettled(
  clock: Clock,
  growth: number,
  then: () => void = () => undefined,
  rss: () => number = process.memoryUsage.rss,
): void {
  const { performance } = globalThis;
  let floor = rss();
  let before = performance.eventLoopUtilization();
  every(clock, LOOK_MS, () => {
    const { utilization } = performance.eventLoopUtilization(before);
    before = performance.eventLoopUtilization();
    if (utilization > BUSY) return;
    const size = rss();
    floor = Math.min(floor, size);
    if (size - floor < growth) return;
    settleMemory(clock, () => {
      then();
      floor = rss();
    });
  });
}
