import { performance } from 'node:perf_hooks';
import { processSamples as procSamples } from '../metrics/process.ts';
import { runtimeSamples } from '../metrics/runtime.ts';
import type { Sample } from '../metrics/sample.ts';

/** Values computed at each scrape: the process, the runtime, and what is running. */
export function processSamples(version: string): () => Iterable<Sample> {
  return () => [
    ...procSamples(),
    ...runtimeSamples({
      version: process.version,
      memory: () => process.memoryUsage(),
      running: () => process.getActiveResourcesInfo().length,
      threads: () => {
        const { active, idle } = performance.eventLoopUtilization();
        return [{ name: 'main', active, idle }];
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
