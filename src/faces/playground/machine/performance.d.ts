/** Types that the browser lacks. */

/** Node's addition to the browser's `Performance` type; `globals.ts` provides it. */
interface Performance {
  readonly eventLoopUtilization: typeof import('node:perf_hooks').performance.eventLoopUtilization;
}
