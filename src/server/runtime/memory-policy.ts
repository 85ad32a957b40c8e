/**
 * Decides when a thread collects its garbage. V8 decides by the size of its own heap: it does not count
 * shared memory, hardly counts buffers, and ignores other threads and the limit of the container.
 *
 * Gain: 8 MiB after the start, and pods of 170 MiB that survive reload storms and floods
 * (docs/decisions/memory.md). Off: leave out the calls. Tried with Node 24 to 26.
 */
import { every, type Clock } from '../base/clock.ts';
import { groupLines } from '../base/control-groups.ts';
import { trimMemory } from './memory.ts';

const MIB = 1024 * 1024;

// The three numbers of the policy.

/** Bytes of short-lived buffers before a minor collection: 64 of the largest DNS messages. */
const PASSING_MAX = 4 * MIB;
/** Bytes of growth that justify a full collection, which blocks the thread for about 15 ms. */
const GROWTH_MAX = 3 * MIB;
/** Memory is short above this share of the limit. The rest is for allocations of the moment. */
const SHORT = 3 / 4;

/** Without need of thrift, the growth of the process in units of `GROWTH_MAX`. */
const AT_LEISURE = 8;
/** Dropped shared memory that even a busy thread collects, in units of `GROWTH_MAX`. */
const EVEN_IF_BUSY = 5;
/** A thread that is busier than this share of its time is busy. */
const BUSY = 0.1;
/** Milliseconds. The first queries often arrive in large numbers right after the start. */
const AFTER_START_MS = 1000;
/** Milliseconds until the other threads have collected as well. */
const OTHERS_MS = 500;
/** Milliseconds between two checks for growth while the thread is idle. */
const IDLE_CHECK_MS = 15_000;
/** Milliseconds between two checks while memory may be short. */
const SHORT_CHECK_MS = 500;
/** Milliseconds that a measurement of the process is valid: it takes some 50 µs. */
const MEASURED_MS = 50;
/** A collection is followed by this many times its duration without one: memory may stay short. */
const REST = 100;

let passing = 0;
let shared = 0;
let floor = Infinity;
let minor: CollectGarbage | undefined;

/**
 * Counts short-lived memory outside the heap, such as that of a forwarded reply. Only small objects
 * refer to it, so a hundred megabytes would pile up before V8 collects. A minor collection takes a
 * millisecond.
 */
export function passedThrough(bytes: number): void {
  passing += bytes;
  if (passing < PASSING_MAX) return;
  passing = 0;
  minor ??= collector();
  minor?.({ type: 'minor', execution: 'sync' });
}

/**
 * Counts shared memory that this thread no longer uses, such as the old version of a zone. The next
 * idle check collects it. It is freed when no thread has a view of it.
 */
export function droppedShared(bytes: number): void {
  const before = shared;
  shared += bytes;
  const most = EVEN_IF_BUSY * GROWTH_MAX;
  if (before < most && shared >= most) setImmediate(collectMemory);
}

/** Collects this thread's memory now. Compiled code stays. */
export function collectMemory(): void {
  collect('regular');
}

/**
 * Collects if this thread has grown by `most` bytes. To be called when something large was dropped,
 * such as a replaced configuration: V8 collects when the heap has doubled.
 *
 * It blocks the thread. With 100 000 endpoints (35 MiB) it takes 14 ms if V8 has other CPUs for its
 * helpers, and 20 to 35 ms on a single one.
 * @returns whether it was collected
 */
export function collectGrown(most: number = GROWTH_MAX): boolean {
  const used = usedBytes();
  floor = Math.min(floor, used);
  if (used - floor < most) return false;
  collect('regular');
  floor = usedBytes();
  return true;
}

/** Collects after `afterMs`, and then returns free memory of the C library to the system. */
export function collectLater(clock: Clock, afterMs: number, then?: () => void): void {
  clock.after(afterMs, () => collectAndTrim(clock, 'last-resort', then));
}

function collectAndTrim(clock: Clock, flavor: Flavor, then?: () => void): void {
  collect(flavor);
  clock.after(OTHERS_MS, () => {
    trimMemory();
    then?.();
  });
}

/** Clock and limits; the measurements have defaults, and tests replace them. */
export interface MemoryPolicyParts {
  readonly clock: Clock;
  /** Bytes that the process may use; default: no limit. */
  readonly limit?: number;
  /** True if saving memory is worth a pause of some 15 ms now and then. */
  readonly thrifty?: boolean;
  /** Bytes of this process that no file holds. */
  readonly own?: () => number;
  /** All bytes of this process. */
  readonly rss?: () => number;
  /** True if the thread has been busy since the last call. */
  readonly isBusy?: () => boolean;
  /** Collects if there is something to collect. */
  readonly collectGrown?: () => boolean;
}

/** The memory policy of one thread. */
export class MemoryPolicy {
  readonly #parts: Required<MemoryPolicyParts>;
  #measuredAt = -Infinity;
  #short = false;

  constructor(parts: MemoryPolicyParts) {
    this.#parts = {
      limit: Infinity,
      thrifty: false,
      own: ownBytes,
      rss: process.memoryUsage.rss,
      isBusy: busySince(),
      collectGrown,
      ...parts,
    };
  }

  /** True if the process uses nearly all the memory that it may. */
  get short(): boolean {
    const { clock, limit, own } = this.#parts;
    if (limit === Infinity) return false;
    const now = clock.now();
    if (now - this.#measuredAt >= MEASURED_MS) {
      this.#measuredAt = now;
      this.#short = own() > limit * SHORT;
    }
    return this.#short;
  }

  /**
   * The growth, in bytes, after which a dropped configuration is collected: a 64th of the limit.
   * Without a limit V8 does it, in small steps, so that no answer waits.
   */
  get droppedMax(): number {
    const { thrifty, limit } = this.#parts;
    return thrifty ? GROWTH_MAX : Math.max(GROWTH_MAX, limit / 64);
  }

  /**
   * Collects the garbage of the start (parsed files, functions that ran once), and then as the
   * policy decides. @param settled runs when all threads that began together have collected
   */
  begin(settled?: () => void): void {
    collectLater(this.#parts.clock, AFTER_START_MS, settled);
    this.#collectWhileIdle();
    if (this.#parts.limit !== Infinity) this.#collectWhileShort();
  }

  /** An idle thread has no reason to collect, and would keep the memory of a flood. */
  #collectWhileIdle(): void {
    const { clock, thrifty, rss, isBusy } = this.#parts;
    const growth = thrifty ? GROWTH_MAX : AT_LEISURE * GROWTH_MAX;
    let least = rss();
    every(clock, IDLE_CHECK_MS, () => {
      if (isBusy()) return;
      const size = rss();
      least = Math.min(least, size);
      if (size - least >= growth)
        collectAndTrim(clock, 'last-resort', () => {
          least = rss();
        });
      else if (shared >= GROWTH_MAX) collectMemory();
    });
  }

  /** V8 waits until the heap of a thread is nearly full; four workers that do end the process. */
  #collectWhileShort(): void {
    const { clock, collectGrown: collects } = this.#parts;
    let restsUntil = -Infinity;
    every(clock, SHORT_CHECK_MS, () => {
      const begin = clock.now();
      if (begin < restsUntil || !this.short || !collects()) return;
      trimMemory();
      const end = clock.now();
      restsUntil = end + REST * (end - begin);
    });
  }
}

/** Bytes that no file holds, which the system cannot take back; 0: unknown. */
function ownBytes(): number {
  const line = groupLines('/proc/self/status').find((each) => each.startsWith('RssAnon:'));
  return 1024 * Number(/\d+/.exec(line ?? '')?.[0] ?? 0);
}

/** Bytes of this thread's objects and of the buffers that they hold. */
function usedBytes(): number {
  const statistics = process.getBuiltinModule('node:v8').getHeapStatistics();
  return statistics.used_heap_size + statistics.external_memory;
}

function busySince(): () => boolean {
  const { performance } = globalThis;
  let before = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    return utilization > BUSY;
  };
}

/** `last-resort` drops compiled code, too. */
type Flavor = 'regular' | 'last-resort';

type CollectGarbage = (options: {
  readonly type: 'major' | 'minor';
  readonly execution: 'sync';
  readonly flavor?: Flavor;
}) => void;

function collect(flavor: Flavor): void {
  shared = 0;
  collector()?.({ type: 'major', execution: 'sync', flavor });
}

/** The number of attempts if another thread has put the flag back; see `collector`. */
const ATTEMPTS = 10;

/**
 * V8's garbage collector as a function. Only a context that is created while `--expose-gc` is set
 * has it. With that flag at the start, Node would compile its own modules again in each thread
 * (docs/decisions/dist.md). The flag belongs to the whole process: another thread may put it back
 * before the context exists, so this tries again.
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
