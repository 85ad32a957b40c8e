/** The member that Node adds to a type of browsers. */

/** Node's addition to `performance`, beside the types of the browser; `globals.ts` provides it. */
interface Performance {
  readonly eventLoopUtilization: typeof import('node:perf_hooks').performance.eventLoopUtilization;
}
