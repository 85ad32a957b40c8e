/**
 * Decides when a thread collects its garbage. V8 considers only the size of its own heap: it ignores shared memory,
 * other threads and the container limit, and hardly counts buffers.
 *
 * Gain: 8 MiB after startup, and 170 MiB pods that survive reload storms and floods (docs/decisions/memory.md). To
 * disable it, remove the calls. Tested with Node 24 to 26.
 */
import { every, type Clock } from '../base/clock.ts';
import { groupLines } from '../base/control-groups.ts';
import { trimMemory } from './memory.ts';

const MIB = 1024 * 1024;

/** Bytes of short-lived buffers before a minor collection: 64 DNS messages of maximum size. */
const PASSING_MAX = 4 * MIB;
/** Bytes of growth that justify a full collection, which blocks the thread for about 15 ms. */
const GROWTH_MAX = 3 * MIB;
/** Memory is short above this share of the limit. The rest is for temporary allocations. */
const SHORT = 3 / 4;

/** Growth threshold for the process when saving memory is not a priority, in units of `GROWTH_MAX`. */
const AT_LEISURE = 8;
/** Amount of dropped shared memory that even a busy thread collects, in units of `GROWTH_MAX`. */
const EVEN_IF_BUSY = 5;
/** Share of its time above which a thread counts as busy. */
const BUSY = 0.1;
/** Milliseconds. The first queries often arrive in large numbers right after startup. */
const AFTER_START_MS = 1000;
/** Milliseconds to wait for the other threads to collect as well. */
const OTHERS_MS = 500;
/** Milliseconds between checks for growth while the thread is idle. */
const IDLE_CHECK_MS = 15_000;
/** Milliseconds between checks while memory may be short. */
const SHORT_CHECK_MS = 500;
/** Milliseconds for which a measurement of the process, which takes about 50 µs, is reused. */
const MEASURED_MS = 50;
/** Minimum pause after a collection, as a multiple of its duration, because memory may stay short. */
const REST = 100;

let passing = 0;
let shared = 0;
let floor = Infinity;
let minor: CollectGarbage | undefined;

/**
 * Counts short-lived memory outside the heap, such as a forwarded reply. Only small objects refer to it, so a hundred
 * megabytes would pile up before V8 collects. A minor collection takes a millisecond.
 */
export function passedThrough(bytes: number): void {
  passing += bytes;
  if (passing < PASSING_MAX) return;
  passing = 0;
  minor ??= collector();
  minor?.({ type: 'minor', execution: 'sync' });
}

/**
 * Counts shared memory that this thread no longer uses, such as the old version of a zone. The next idle check collects
 * it. It is freed once no thread has a view of it.
 */
export function droppedShared(bytes: number): void {
  const before = shared;
  shared += bytes;
  const most = EVEN_IF_BUSY * GROWTH_MAX;
  if (before < most && shared >= most) setImmediate(collectMemory);
}

/** Collects this thread's garbage now, without discarding compiled code. */
export function collectMemory(): void {
  collect('regular');
}

/**
 * Collects if this thread has grown by `most` bytes. Call it after dropping something large, such as a replaced
 * configuration; V8 alone would wait until the heap has doubled.
 *
 * This blocks the thread. With 100 000 endpoints (35 MiB) it takes 14 ms if V8's helper threads have other CPUs, and 20
 * to 35 ms on a single CPU.
 * @returns whether a collection ran
 */
export function collectGrown(most: number = GROWTH_MAX): boolean {
  const used = usedBytes();
  floor = Math.min(floor, used);
  if (used - floor < most) return false;
  collect('regular');
  floor = usedBytes();
  return true;
}

/** Collects after `afterMs`, then returns the C library's free memory to the system. */
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

/** Clock and limits. The measurements have defaults, which tests replace. */
export interface MemoryPolicyParts {
  readonly clock: Clock;
  /** Number of bytes that the process may use; default: no limit. */
  readonly limit?: number;
  /** True if saving memory is worth an occasional pause of about 15 ms. */
  readonly thrifty?: boolean;
  /** Bytes of this process that are not backed by files. */
  readonly own?: () => number;
  /** Resident set size of this process, in bytes. */
  readonly rss?: () => number;
  /** True if the thread has been busy since the last call. */
  readonly isBusy?: () => boolean;
  /** Collects if there is something to collect. */
  readonly collectGrown?: () => boolean;
}

/** The memory policy for one thread. */
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

  /** True if the process is close to its memory limit. */
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
   * Growth, in bytes, after which a dropped configuration is collected: 1/64 of the limit. Without a limit, V8 collects
   * in small steps, so no answer is delayed.
   */
  get droppedMax(): number {
    const { thrifty, limit } = this.#parts;
    return thrifty ? GROWTH_MAX : Math.max(GROWTH_MAX, limit / 64);
  }

  /**
   * Collects the garbage from startup (parsed files, functions that ran once), then follows the policy.
   * @param settled runs once all threads that started together have collected
   */
  begin(settled?: () => void): void {
    collectLater(this.#parts.clock, AFTER_START_MS, settled);
    this.#collectWhileIdle();
    if (this.#parts.limit !== Infinity) this.#collectWhileShort();
  }

  /** V8 has no reason to collect in an idle thread, which would hold the memory of a flood forever. */
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

  /** V8 waits until a thread's heap is nearly full. If four workers do so, the process runs out of memory. */
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

/** Returns the bytes not backed by files, which the system cannot reclaim; 0: unknown. */
function ownBytes(): number {
  const line = groupLines('/proc/self/status').find((each) => each.startsWith('RssAnon:'));
  return 1024 * Number(/\d+/.exec(line ?? '')?.[0] ?? 0);
}

/** Returns the bytes of this thread's objects and the buffers that they hold. */
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

/** `last-resort` also discards compiled code. */
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

/** Number of attempts if another thread has reset the flag; see `collector`. */
const ATTEMPTS = 10;

/**
 * Returns V8's garbage collector as a function, available only in a context created while `--expose-gc` is set. If the
 * flag were set at startup, Node would recompile its own modules in each thread (docs/decisions/dist.md). The flag is
 * global to the process, and another thread may reset it before the context exists, so this retries.
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
