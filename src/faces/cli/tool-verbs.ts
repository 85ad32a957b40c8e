/** Commands that the server image leaves out. Its bundle replaces this file with an empty table (`tools/bundle.ts`). */
import type { Verb } from './command.ts';
import type { VerbName } from './verb-names.ts';

type ToolVerbName = Exclude<VerbName, 'serve' | 'node-cache' | 'version'>;

/** Empty in the server image. */
export const toolVerbs: Readonly<Record<ToolVerbName, Verb>> = {
  trace: {
    usage: async () => (await import('./trace/trace-options.ts')).traceUsage,
    command: async () => (await import('./trace/trace.ts')).trace,
  },
  query: {
    usage: async () => (await import('./query/query-options.ts')).queryUsage,
    command: async () => (await import('./query/query.ts')).query,
  },
  lint: {
    usage: async () => (await import('./lint/lint-options.ts')).lintUsage,
    command: async () => (await import('./lint/lint.ts')).lint,
  },
  capture: {
    usage: async () => (await import('./capture/capture-options.ts')).captureUsage,
    command: async () => (await import('./capture/capture.ts')).capture,
  },
  top: {
    usage: async () => (await import('./top/top-options.ts')).topUsage,
    command: async () => (await import('./top/top.ts')).top,
  },
  console: {
    usage: async () => (await import('./console/console-options.ts')).consoleUsage,
    command: async () => (await import('./console/console.ts')).console,
  },
  watch: {
    usage: async () => (await import('./watch/watch-options.ts')).watchUsage,
    command: async () => (await import('./watch/watch.ts')).watch,
  },
  diff: {
    usage: async () => (await import('./diff/diff-options.ts')).diffUsage,
    command: async () => (await import('./diff/diff.ts')).diff,
  },
  plan: {
    usage: async () => (await import('./plan/plan-options.ts')).planUsage,
    command: async () => (await import('./plan/plan.ts')).plan,
  },
  doctor: {
    usage: async () => (await import('./doctor/doctor-options.ts')).doctorUsage,
    command: async () => (await import('./doctor/doctor.ts')).doctor,
  },
  cache: {
    usage: async () => (await import('./cache/cache-options.ts')).cacheUsage,
    command: async () => (await import('./cache/cache.ts')).cache,
  },
  etcd: {
    usage: async () => (await import('./etcd/etcd-options.ts')).etcdUsage,
    command: async () => (await import('./etcd/etcd.ts')).etcd,
  },
  lab: {
    usage: async () => (await import('./lab/lab-options.ts')).labUsage,
    command: async () => (await import('./lab/lab.ts')).lab,
  },
  rollout: {
    usage: async () => (await import('./rollout/rollout-options.ts')).rolloutUsage,
    command: async () => (await import('./rollout/rollout.ts')).rollout,
  },
  check: {
    usage: async () => (await import('./check/check-options.ts')).checkUsage,
    command: async () => (await import('./check/check.ts')).check,
  },
  size: {
    usage: async () => (await import('./size/size-options.ts')).sizeUsage,
    command: async () => (await import('./size/size.ts')).size,
  },
  webhook: {
    usage: async () => (await import('./webhook/webhook-options.ts')).webhookUsage,
    command: async () => (await import('./webhook/webhook.ts')).webhook,
  },
  exec: {
    usage: async () => (await import('./exec/exec-options.ts')).execUsage,
    command: async () => (await import('./exec/exec.ts')).exec,
  },
  node: {
    usage: async () => (await import('./node/node-options.ts')).nodeUsage,
    command: async () => (await import('./node/node.ts')).node,
  },
  bench: {
    usage: async () => (await import('./bench/bench-options.ts')).benchUsage,
    command: async () => (await import('./bench/bench.ts')).bench,
  },
  completion: {
    usage: async () => (await import('./completion/completion.ts')).completionUsage,
    command: async () => (await import('./completion/completion.ts')).completion,
  },
};
