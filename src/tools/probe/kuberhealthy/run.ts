/**
 * Reads the environment that Kuberhealthy passes to its checker pods. It contains the report URL, the run ID, the
 * deadline, and what to check.
 */
import type { Environment } from '../../../server/base/environment.ts';
import { parseDuration } from '../../../server/base/duration.ts';
import { Problem } from '../../../server/base/problem.ts';

export interface KuberhealthyRun {
  /** `…/externalCheckStatus` (Kuberhealthy 2) or `…/check` (3). */
  readonly url: URL;
  /** Identifies the run. Reports with another ID are rejected. */
  readonly id: string;
  /** The time after which reports are rejected, in milliseconds on the wall clock. */
  readonly deadline: number;
}

/** The settings for a `dns-resolution-check`. */
export interface ResolutionCheck {
  /** As an application would write it. */
  readonly name: string;
  /**
   * A label selector, in the API's syntax, for the service whose servers are queried individually. Null if there is
   * none.
   */
  readonly labels: string | null;
  /** `''`: all namespaces. */
  readonly namespace: string;
  readonly remarks: readonly string[];
}

/** The default time limit of Kuberhealthy's own checks. */
const USUAL_MS = 5 * 60_000;

/**
 * Returns the run that this process was started for, or null if there is none.
 * @param now wall-clock milliseconds
 * @throws Problem if the run is specified incorrectly
 */
export function kuberhealthyRun(env: Environment, now: number): KuberhealthyRun | null {
  const given = env['KH_REPORTING_URL'] ?? '';
  if (given === '') return null;
  const url = URL.parse(given);
  if (url === null || url.protocol !== 'http:')
    throw new Problem({
      code: 'bad-kuberhealthy-run',
      text: `KH_REPORTING_URL is not a Kuberhealthy URL: "${given}"`,
      remedy: 'Kuberhealthy sets it to http://kuberhealthy.NAMESPACE.svc/check',
    });
  const id = env['KH_RUN_UUID'] ?? '';
  // Kuberhealthy 2 can also identify pods by address, while version 3 rejects reports without an ID.
  if (id === '' && url.pathname === '/check')
    throw new Problem({
      code: 'bad-kuberhealthy-run',
      text: 'KH_RUN_UUID is not set, and Kuberhealthy rejects reports without it',
      remedy: 'Kuberhealthy sets it in the pods it starts.',
    });
  return { url, id, deadline: deadlineOf(env, now) };
}

/** Kuberhealthy's deadline or the check's own limit, whichever comes first. */
function deadlineOf(env: Environment, now: number): number {
  const seconds = Number(env['KH_CHECK_RUN_DEADLINE'] ?? '');
  const told = seconds > 0 ? seconds * 1000 : now + USUAL_MS;
  const limit = parseDuration(env['CHECK_POD_TIMEOUT'] ?? '');
  return limit !== null && limit > 0 ? Math.min(told, now + limit) : told;
}

/** @param ownName this pod's host name, which is the default for HOSTNAME */
export function resolutionCheck(env: Environment, ownName: string): ResolutionCheck {
  const remarks: string[] = [];
  let name = env['HOSTNAME'] ?? '';
  if (name === '' || name === ownName) {
    remarks.push(
      name === ''
        ? 'HOSTNAME is not set, so kubernetes.default is checked instead'
        : `HOSTNAME is ${name}, the pod's own name, which /etc/hosts answers, so kubernetes.default is checked instead. Set HOSTNAME in the pod's env`,
    );
    name = 'kubernetes.default';
  }
  const labels = env['DNS_POD_SELECTOR'] ?? '';
  if (labels === '' && (env['DNS_NODE_SELECTOR'] ?? '') !== '')
    remarks.push(
      'DNS_NODE_SELECTOR appears in old examples but was never read; use DNS_POD_SELECTOR',
    );
  return {
    name,
    labels: labels === '' ? null : labels,
    namespace: env['NAMESPACE'] ?? '',
    remarks,
  };
}
