/** Metrics of the process and its runtime. */
import { performance } from 'node:perf_hooks';
import { cpuCount } from '../../../server/base/cpu-count.ts';
import { observeGc, type GcPauses } from '../../../server/metrics/gc-pauses.ts';
import { processSamples as procSamples, threadCount } from '../../../server/metrics/process.ts';
import { runtimeSamples, type Runtime } from '../../../server/metrics/runtime.ts';
import type { MetricSample } from '../../../server/metrics/sample.ts';

/**
 * Computes process, runtime and build metrics at each scrape.
 * @param workers the other JavaScript threads
 */
export function processSamples(
  version: string,
  workers: () => ReturnType<Runtime['threads']>,
): () => Iterable<MetricSample> {
  let gc: (() => GcPauses) | null = null;
  return () => [
    ...procSamples(),
    ...runtimeSamples({
      version: process.version,
      memory: () => process.memoryUsage(),
      allocated: () => heap().total_allocated_bytes ?? 0,
      gc: () => (gc ??= observeGc())(),
      systemThreads: threadCount,
      processors: cpuCount(),
      running: () => process.getActiveResourcesInfo().length,
      threads: () => {
        const { active, idle } = performance.eventLoopUtilization();
        return [{ name: 'main', active, idle }, ...workers()];
      },
    }),
    {
      name: 'coredns_build_info',
      kind: 'gauge',
      help: 'A metric with a constant 1 value labeled by version, revision, and goversion from which it was built.',
      labels: { version: `ndots-${version}`, revision: '', goversion: process.version },
      value: 1,
    },
  ];
}

/** Newer runtimes also report the total allocated memory. */
function heap(): { readonly total_allocated_bytes?: number } {
  return process.getBuiltinModule('node:v8').getHeapStatistics();
}
