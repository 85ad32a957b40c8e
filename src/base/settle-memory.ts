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

/** Bytes after which what was garbage at once is collected: 64 of the largest DNS messages. */
const PASSING_MAX = 4 * 1024 * 1024;
let passing = 0;
let young: CollectGarbage | undefined;

/**
 * Tells of memory outside the JavaScript heap that is taken for what is over in a moment, as a reply that is passed on. The runtime hardly
 * counts it: objects of a few bytes hold it, and a hundred megabytes of it pile up before there are enough of them for a collection. After
 * every few megabytes the young part of the heap is collected, which takes a millisecond.
 */
export function passedThrough(bytes: number): void {
  passing += bytes;
  if (passing < PASSING_MAX) return;
  passing = 0;
  young ??= collector();
  young?.({ type: 'minor', execution: 'sync' });
}

/** Bytes of a thread that may have grown before what it has dropped is collected. */
const DROPPED_MAX = 3 * 1024 * 1024;
let floor = Infinity;

/**
 * To be called when something large has been dropped, as a configuration that another has replaced. The runtime collects such things when the
 * heap has doubled, and buffers that they hold hardly count: tens of megabytes a thread pile up when one follows another.
 */
export function collectDropped(): void {
  const used = usedBytes();
  floor = Math.min(floor, used);
  if (used - floor < DROPPED_MAX) return;
  collect('regular');
  floor = usedBytes();
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

/** Threads that collect at the same moment take the flag from each other; so often in a row they do not. */
const ATTEMPTS = 10;

/**
 * The runtime's collector, which only a context that begins while the flag is set has. A runtime that is started with another flag than its
 * own modules were compiled with compiles them anew, in each thread: docs/decisions/dist.md. The flag is that of the whole process: another
 * thread may put it back before the context begins, and then this one has no collector and tries again.
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

/** How often a thread looks at the memory of its process. */
const LOOK_MS = 15_000;
/** What is worth a collection, bytes: it holds up the thread for some 15 ms. For programs whose memory counts, and for all others. */
export const GROWTH: Readonly<Record<'some' | 'much', number>> = {
  some: 2 * 1024 * 1024,
  much: 24 * 1024 * 1024,
};
/** A thread that is busier than this has better things to do. */
const BUSY = 0.1;

/**
 * Goes on doing so for the life of this thread, whenever the process has grown since the last time and there is little to do: after a flood, say,
 * whose memory an idle thread has no reason of its own to give back.
 * @param growth of the process, bytes
 * @param then runs after each
 * @param rss of the process, bytes; for tests
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
