/**
 * Reads Kuberhealthy's environment variables for `ndots check serve --kuberhealthy`, so that existing deployments work
 * unchanged.
 */
import type { Retention } from '../../../addons/kuberhealthy/pod-sweeper.ts';
import type { Environment } from '../../../server/base/environment.ts';
import { parseDuration } from '../../../server/base/duration.ts';
import { usage } from '../option-values.ts';

/** Kuberhealthy 3's defaults, except that the value for jobs comes from version 2's deployment. */
const USUAL: Retention = {
  completed: 1,
  failed: 2,
  failedMs: 36 * 3_600_000,
  jobsMs: 15 * 60_000,
};
/** A year, by which time the logs and their node no longer exist. */
const LONGEST_MS = 366 * 86_400_000;
const COUNT_MAX = 1000;

/** Variables that are read elsewhere or passed on to checkers. */
const known: ReadonlySet<string> = new Set([
  ...['KH_TARGET_NAMESPACE', 'KH_CHECK_REPORT_URL', 'KH_EXTERNAL_REPORTING_URL'],
  ...['KH_MAX_COMPLETED_POD_COUNT', 'KH_MAX_ERROR_POD_COUNT', 'KH_ERROR_POD_RETENTION_TIME'],
  ...['KH_MAX_JOB_AGE', 'KH_LISTEN_ADDRESS'],
  ...['KH_REPORTING_URL', 'KH_RUN_UUID', 'KH_POD_NAMESPACE', 'KH_CHECK_RUN_DEADLINE'],
]);

/**
 * Reads how long to keep pods and how many.
 * @throws Problem if a value is not a number or a duration
 */
export function keptOf(env: Environment): Retention {
  const count = (name: string, usual: number): number => {
    const given = env[name] ?? '';
    if (given === '') return usual;
    const value = /^\d{1,4}$/.test(given) ? Number(given) : NaN;
    if (value <= COUNT_MAX) return value;
    throw usage(`${name} takes a number from 0 to ${COUNT_MAX}, not "${given}"`);
  };
  const time = (name: string, usual: number): number => {
    const given = env[name] ?? '';
    if (given === '') return usual;
    const ms = parseDuration(given);
    if (ms !== null && ms >= 0) return Math.min(ms, LONGEST_MS);
    throw usage(`${name} takes a time such as 36h, not "${given}"`);
  };
  return {
    completed: count('KH_MAX_COMPLETED_POD_COUNT', USUAL.completed),
    failed: count('KH_MAX_ERROR_POD_COUNT', USUAL.failed),
    failedMs: time('KH_ERROR_POD_RETENTION_TIME', USUAL.failedMs),
    jobsMs: time('KH_MAX_JOB_AGE', USUAL.jobsMs),
  };
}

/** Kuberhealthy variables that have no effect here, so that we can warn about them. */
export function unheard(env: Environment): readonly string[] {
  return Object.keys(env)
    .filter((name) => name.startsWith('KH_') || name === 'CHECK_REAPER_RUN_INTERVAL')
    .filter((name) => !known.has(name) && env[name] !== '')
    .toSorted();
}
