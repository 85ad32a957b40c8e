/** Renders the state of all checks in Kuberhealthy's formats, with JSON and metrics for both versions. */
import { clipped } from '../../server/base/shortened.ts';
import { printDuration } from '../../server/base/duration.ts';
import type { MetricSample } from '../../server/metrics/sample.ts';
import { fullName, type CheckObject, type KuberhealthyVersion } from './check-object.ts';
import { khStateOf, statusOf } from './check-state.ts';
import type { SweepReason } from './pod-sweeper.ts';

export interface StatusFacts {
  readonly checks: readonly CheckObject[];
  /** The leading replica, or `''` if unknown. */
  readonly leader: string;
  readonly leads: boolean;
  readonly loopSeconds: number;
  readonly due: number;
  /** The number of checks paused because the API server rejected their changes. */
  readonly refused: number;
  readonly sweepSeconds: number;
  readonly swept: ReadonlyMap<SweepReason, number>;
  /** The number of known checker pods, and of those beyond the limit. */
  readonly pods: { readonly pods: number; readonly leftOut: number };
  /** Returns the pod for a run, or null if unknown. */
  readonly podOfRun: (run: string) => string | null;
  readonly eventsDropped: number;
  /** The number of objects beyond the limit, and the approximate size of the rest in bytes. */
  readonly objects: { readonly leftOut: number; readonly bytes: number };
  /** Milliseconds since 1970. */
  readonly wall: number;
}

/** True if a check counts as failed. A check that has never finished a run does not. */
function isBad({ state }: CheckObject): boolean {
  return !state.ok && (state.errors.length > 0 || state.failures > 0);
}

export function overall(checks: readonly CheckObject[]): { ok: boolean; errors: string[] } {
  const bad = checks.filter((check) => isBad(check));
  return { ok: bad.length === 0, errors: bad.flatMap(({ state }) => state.errors) };
}

/**
 * Version 2's status page, `/`, which lists jobs separately. Since the page is public, a run's UUID is shown only after
 * the run has ended.
 */
export function statusOfVersion2({ checks, leader }: StatusFacts): object {
  const { ok, errors } = overall(checks);
  const detailsOf = (some: readonly CheckObject[]): object =>
    Object.fromEntries(
      keyed(some, 2, fullName).map(([key, check]) => {
        const { khWorkload: _, ...spec } = khStateOf(check, check.state).spec;
        return [key, check.state.isRunning ? { ...spec, uuid: '' } : spec];
      }),
    );
  return {
    OK: ok,
    Errors: errors,
    CheckDetails: detailsOf(checks.filter(({ kind }) => kind !== 'khjob')),
    JobDetails: detailsOf(checks.filter(({ kind }) => kind === 'khjob')),
    CurrentMaster: leader,
  };
}

/**
 * Gives each check a unique key, because both versions may have a check with the same name during a migration. Checks
 * of the page's own version keep Kuberhealthy's keys, while others append their kind if the key is taken.
 */
function keyed(
  checks: readonly CheckObject[],
  own: KuberhealthyVersion,
  keyOf: (check: CheckObject) => string,
): readonly (readonly [string, CheckObject])[] {
  const taken = new Set(checks.filter(({ version }) => version === own).map(keyOf));
  return checks.map((check) => {
    const key = keyOf(check);
    if (check.version === own) return [key, check];
    if (taken.has(key)) return [`${fullName(check)} (${check.kind})`, check];
    taken.add(key);
    return [key, check];
  });
}

/**
 * Version 3's status page, `/json`. As in Kuberhealthy, checks are listed by name, and those that share a name are
 * prefixed with their namespace.
 */
export function statusOfVersion3({ checks, leader, wall, podOfRun }: StatusFacts): object {
  const { ok, errors } = overall(checks);
  const names = new Map<string, number>();
  const count = (key: string): void => void names.set(key, (names.get(key) ?? 0) + 1);
  for (const { name, version } of checks) {
    count(name);
    if (version === 3) count(`3 ${name}`);
  }
  const keyOf = (check: CheckObject): string =>
    names.get(check.version === 3 ? `3 ${check.name}` : check.name) === 1
      ? check.name
      : fullName(check);
  return {
    OK: ok,
    Errors: errors,
    CheckDetails: Object.fromEntries(
      keyed(checks, 3, keyOf).map(([key, check]) => {
        const { state, intervalMs, timeoutMs } = check;
        const nextAt = (state.begunAt ?? wall) + intervalMs;
        const podName = check.version === 3 && state.isRunning ? podOfRun(state.run) : null;
        const details = {
          ...statusOf(check, state),
          ...(state.isRunning && { currentUUID: '' }),
          ...(podName !== null && { podName }),
          ...(!state.isRunning &&
            !check.runsOnce &&
            state.begunAt !== null && { nextRunUnix: Math.floor(nextAt / 1000) }),
          timeoutSeconds: Math.floor(timeoutMs / 1000),
          runIntervalSeconds: Math.floor(intervalMs / 1000),
        };
        return [key, details];
      }),
    ),
    CurrentMaster: leader,
    Metadata: {},
  };
}

/** The label names that each version uses for a check's series. */
const labelNames = {
  'kuberhealthy.io/severity': 'severity',
  'kuberhealthy.io/category': 'category',
} as const;
/** Maximum length of label values. */
const LABEL_MAX = 256;
/** Seconds. */
const buckets = [1, 5, 10, 30, 60, 120, 300] as const;

export function statusSamples(facts: StatusFacts): readonly MetricSample[] {
  const { checks, leader, leads, loopSeconds, due, sweepSeconds, swept, wall } = facts;
  const found: MetricSample[] = [];
  const add = (
    name: string,
    help: string,
    labels: Readonly<Record<string, string>>,
    value: number,
    kind: MetricSample['kind'] = 'gauge',
  ): void => void found.push({ name: `kuberhealthy_${name}`, help, kind, labels, value });
  const running = 'Whether checks run; current_master is the replica that runs them.';
  add('running', running, { current_master: leader }, 1);
  for (const [name, help, value] of [
    ['cluster_state', 'Whether all checks pass.', overall(checks).ok ? 1 : 0],
    ['controller_leader', 'Whether this replica runs the checks.', leads ? 1 : 0],
    ['scheduler_loop_duration_seconds', 'Duration of the last scan of all checks.', loopSeconds],
    ['scheduler_due_checks', 'Checks that were due in the last scan.', due],
    ['reaper_last_sweep_duration_seconds', 'Duration of the last pod deletion.', sweepSeconds],
  ] as const)
    add(name, help, {}, value);
  for (const reason of ['timeout', 'completed', 'failed', 'expired'] as const) {
    const help = 'Check pods that were deleted.';
    add('reaper_deleted_pods_total', help, { reason }, swept.get(reason) ?? 0, 'counter');
  }
  const refused = 'Checks that are waiting because the API server rejected their changes.';
  for (const [name, help, value, kind] of [
    ['pods', 'Known checker pods.', facts.pods.pods],
    ['pods_left_out', 'Checker pods above the limit.', facts.pods.leftOut],
    ['objects_bytes', 'Approximate memory used by checks and their states.', facts.objects.bytes],
    ['objects_left_out', 'Checks and states that did not fit into memory.', facts.objects.leftOut],
    ['refused', refused, facts.refused],
    ['events_dropped_total', 'Events that were not written.', facts.eventsDropped, 'counter'],
  ] as const)
    found.push({ name: `ndots_check_${name}`, help, kind: kind ?? 'gauge', labels: {}, value });
  for (const check of checks) {
    const { namespace, state, version } = check;
    const base = { check: version === 2 ? fullName(check) : check.name, namespace };
    const more = Object.fromEntries(
      Object.entries(labelNames).flatMap(([label, name]) =>
        check.labels[label] === undefined ? [] : [[name, shortened(check.labels[label])]],
      ),
    );
    const labels = { ...base, ...more };
    const status = state.ok ? '1' : '0';
    const error = shortened(state.errors.join('|'));
    if (check.kind === 'khjob') {
      const whole = { ...labels, status, error };
      add('job', 'Whether the job passed.', whole, state.ok ? 1 : 0);
      add('job_duration_seconds', 'Duration of the job.', labels, state.tookMs / 1000);
      continue;
    }
    add('check', 'Whether the check passes.', { ...labels, status, error }, state.ok ? 1 : 0);
    add('check_duration_seconds', 'Duration of the last run.', labels, state.tookMs / 1000);
    if (version === 2) continue;
    add('check_consecutive_failures', 'Consecutive failed runs.', labels, state.failuresInARow);
    add('check_success_total', 'Successful runs.', labels, state.successes, 'counter');
    add('check_failure_total', 'Runs that failed.', labels, state.failures, 'counter');
    const since = state.lastOkAt === null ? -1 : Math.max(0, wall - state.lastOkAt) / 1000;
    add(
      'check_seconds_since_success',
      'Time since the last successful run; -1 if there was none.',
      labels,
      since,
    );
  }
  found.push(...histogram(checks.filter(({ kind }) => kind !== 'khjob')));
  return found;
}

function histogram(checks: readonly CheckObject[]): readonly MetricSample[] {
  const seconds = checks.map(({ state }) => state.tookMs / 1000);
  const name = 'kuberhealthy_check_run_duration_seconds';
  const help = 'Duration of each check’s last run.';
  const sample = (
    suffix: string,
    labels: Readonly<Record<string, string>>,
    value: number,
  ): MetricSample => ({
    name: `${name}_${suffix}`,
    help,
    kind: 'gauge',
    labels,
    value,
  });
  return [
    ...buckets.map((most) =>
      sample('bucket', { le: String(most) }, seconds.filter((each) => each <= most).length),
    ),
    sample('bucket', { le: '+Inf' }, seconds.length),
    sample(
      'sum',
      {},
      seconds.reduce((sum, each) => sum + each, 0),
    ),
    sample('count', {}, seconds.length),
  ];
}

function shortened(value: string): string {
  // Some metrics parsers reject control characters.
  const line = value.replace(/[\s\p{Cc}]+/gu, ' ');
  return clipped(line, LABEL_MAX);
}

/** Formats the duration of a run for people. */
export function tookText({ state }: CheckObject): string {
  return state.begunAt === null ? '–' : printDuration(state.tookMs);
}
