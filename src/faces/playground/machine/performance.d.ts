/** Types that the browser lacks. */

/** Node's additions to the browser's `Performance` type, which are provided by `globals.ts`. */
interface Performance {
  readonly eventLoopUtilization: typeof import('node:perf_hooks').performance.eventLoopUtilization;
}
