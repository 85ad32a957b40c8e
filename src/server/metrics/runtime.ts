import type { GcPauses } from './gc-pauses.ts';
import { counter, gauge, type MetricSample } from './sample.ts';

/** The JavaScript runtime's statistics. Byte counts have the same meaning as in `process.memoryUsage()`. */
export interface Runtime {
  /** `process.version`: `v26.1.0`. */
  readonly version: string;
  memory(): { rss: number; heapTotal: number; heapUsed: number; external: number };
  /** Number of bytes allocated on the main thread's heap since the start, including bytes that were freed. */
  allocated(): number;
  /** The main thread's garbage collections. */
  gc(): GcPauses;
  /** Threads in the process, including the runtime's own. */
  systemThreads(): number;
  /** Number of threads that can run at the same time. */
  readonly processors: number;
  /** Queries in flight plus pending timers, which is the equivalent of Go's goroutines. */
  running(): number;
  /** Each thread's event loop times (`performance.eventLoopUtilization()`), in milliseconds since it started. */
  threads(): readonly { readonly name: string; readonly active: number; readonly idle: number }[];
}

/** Returns the runtime's `nodejs_*` metrics, and substitutes for the `go_*` metrics used by CoreDNS dashboards. */
export function runtimeSamples(runtime: Runtime): readonly MetricSample[] {
  return [...nodeSamples(runtime), ...goSamples(runtime)];
}

/** Returns the runtime's metrics. Heap sizes are the calling thread's, while `rss` covers the whole process. */
export function nodeSamples(runtime: Runtime): readonly MetricSample[] {
  const memory = runtime.memory();
  return [
    gauge('nodejs_version_info', 'Version of Node.js that runs the process.', 1, {
      version: runtime.version,
    }),
    gauge(
      'nodejs_heap_size_total_bytes',
      "Size of the main thread's JavaScript heap in bytes.",
      memory.heapTotal,
    ),
    gauge(
      'nodejs_heap_size_used_bytes',
      "Bytes in use on the main thread's JavaScript heap.",
      memory.heapUsed,
    ),
    gauge(
      'nodejs_external_memory_bytes',
      'Bytes outside the heap that are held by the main thread’s JavaScript objects, mainly buffers.',
      memory.external,
    ),
    ...runtime
      .threads()
      .flatMap(({ name: thread, active, idle }) => [
        counter(
          'nodejs_eventloop_active_seconds_total',
          'Seconds that a thread’s event loop spent working.',
          active / 1000,
          { thread },
        ),
        counter(
          'nodejs_eventloop_idle_seconds_total',
          'Seconds that a thread’s event loop spent waiting for work.',
          idle / 1000,
          { thread },
        ),
      ]),
  ];
}

/**
 * Returns substitutes, so that panels made for a Go program are not empty. Each help text explains the real meaning.
 * Values without an equivalent (heap objects, allocator spans and caches) are omitted.
 */
export function goSamples(runtime: Runtime): readonly MetricSample[] {
  const memory = runtime.memory();
  const gc = runtime.gc();
  const honest = (meaning: string): string =>
    `${meaning} Substitute value, because this is not a Go program.`;
  const standIn = (name: string, meaning: string, value: number): MetricSample =>
    gauge(name, honest(meaning), value);
  return [
    gauge('go_info', honest('Version of Node.js.'), 1, { version: runtime.version }),
    {
      name: 'go_gc_duration_seconds',
      kind: 'summary',
      help: honest('Garbage collections on the main thread since the first scrape.'),
      labels: {},
      value: gc.sum,
      count: gc.count,
      quantiles: gc.quantiles,
    },
    counter(
      'go_memstats_alloc_bytes_total',
      honest('Bytes allocated on the main thread’s heap so far.'),
      runtime.allocated(),
    ),
    standIn(
      'go_memstats_last_gc_time_seconds',
      'Time of the main thread’s last garbage collection, in seconds since 1970.',
      gc.last,
    ),
    standIn('go_sched_gomaxprocs_threads', 'CPUs that the process may use.', runtime.processors),
    standIn('go_goroutines', 'Queries in flight plus timers set.', runtime.running()),
    standIn('go_threads', 'Threads of the process.', runtime.systemThreads()),
    standIn('go_memstats_alloc_bytes', 'Heap in use, main thread.', memory.heapUsed),
    standIn('go_memstats_heap_alloc_bytes', 'Heap in use, main thread.', memory.heapUsed),
    standIn('go_memstats_heap_inuse_bytes', 'Heap in use, main thread.', memory.heapUsed),
    standIn(
      'go_memstats_heap_idle_bytes',
      'Heap not in use, main thread.',
      memory.heapTotal - memory.heapUsed,
    ),
    standIn('go_memstats_heap_sys_bytes', 'Heap size, main thread.', memory.heapTotal),
    standIn(
      'go_memstats_other_sys_bytes',
      'Bytes outside the heap that the main thread’s objects hold.',
      memory.external,
    ),
    standIn('go_memstats_sys_bytes', 'Resident memory of the process.', memory.rss),
  ];
}
