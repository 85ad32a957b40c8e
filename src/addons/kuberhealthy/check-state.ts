/** State transitions of a check, and their form in the objects of each version. No I/O. */
import { printDuration } from '../../server/base/duration.ts';
import type { JsonObject } from '../../server/base/json-object.ts';
import { BEGUN, fullName, RUNNING, type CheckObject, type CheckCondition } from './check-object.ts';
import { boundedErrors } from './error-texts.ts';

/** A run begins. */
export function begun(state: CheckCondition, run: string, wall: number): CheckCondition {
  return { ...state, run, isRunning: true, begunAt: wall };
}

/** The run is given up: as if it had not been. */
export function givenUp(state: CheckCondition): CheckCondition {
  return { ...state, run: '', isRunning: false };
}

/** The run has ended, with errors or without. */
export function ended(
  { version, state }: CheckObject,
  { ok, errors, node = '', authoritativePod }: RunOutcome,
  wall: number,
): CheckCondition {
  return {
    ...state,
    ok,
    errors: boundedErrors(errors),
    // Version 2 keeps the run and accepts a second report of it.
    run: version === 2 ? state.run : '',
    isRunning: false,
    tookMs: state.begunAt === null ? 0 : Math.max(0, wall - state.begunAt),
    node,
    toldAt: wall,
    authoritativePod,
    successes: state.successes + (ok ? 1 : 0),
    failures: state.failures + (ok ? 0 : 1),
    failuresInARow: ok ? 0 : state.failuresInARow + 1,
    lastOkAt: ok ? wall : state.lastOkAt,
    lastFailureAt: ok ? state.lastFailureAt : wall,
  };
}

/** The result of a run. */
export interface RunOutcome {
  readonly ok: boolean;
  readonly errors: readonly string[];
  /** The node of its pod, if known. */
  readonly node?: string;
  /** The replica that says so. */
  readonly authoritativePod: string;
}

/** Why a run failed that did not report, in the words of its version: alerts look for them. */
export function timedOut(check: CheckObject, why: string): string {
  const { version, state, timeoutMs } = check;
  const because = why === '' ? '' : `: ${why}`;
  if (version === 2)
    return `${executionError(check)}: timed out waiting for checker pod to report in${because}`;
  const at = apiTime(state.begunAt ?? 0);
  return `check run ${state.run} timed out after ${printDuration(timeoutMs)} (started at ${at})${because}`;
}

/** Why no pod was made, in the words of its version. */
export function podNotMade(check: CheckObject, why: string): string {
  return check.version === 2
    ? `${executionError(check)}: failed to create pod for checker: ${why}`
    : `failed to create check pod: ${why}`;
}

function executionError(check: CheckObject): string {
  return `${check.kind === 'khjob' ? 'Job' : 'Check'} execution error: ${fullName(check)}`;
}

/** The status of a HealthCheck. */
export function statusOf({ namespace }: CheckObject, state: CheckCondition): JsonObject {
  return {
    ok: state.ok,
    errors: state.errors,
    consecutiveFailures: state.failuresInARow,
    runDuration: Math.round(state.tookMs * 1e6),
    namespace,
    currentUUID: state.run,
    lastRunUnix: secondsOf(state.begunAt),
    successCount: state.successes,
    failureCount: state.failures,
    lastOKUnix: secondsOf(state.lastOkAt),
    lastFailureUnix: secondsOf(state.lastFailureAt),
  };
}

/** The KuberhealthyState of a check. */
export function khStateOf(
  { namespace, kind }: CheckObject,
  state: CheckCondition,
): { readonly annotations: Readonly<Record<string, string>>; readonly spec: JsonObject } {
  return {
    annotations: {
      ...(state.begunAt !== null && { [BEGUN]: new Date(state.begunAt).toISOString() }),
      [RUNNING]: String(state.isRunning),
    },
    spec: {
      OK: state.ok,
      Errors: state.errors,
      RunDuration: printDuration(state.tookMs),
      Namespace: namespace,
      Node: state.node,
      LastRun: state.toldAt === null ? null : apiTime(state.toldAt),
      AuthoritativePod: state.authoritativePod,
      uuid: state.run,
      khWorkload: kind === 'khjob' ? 'KHJob' : 'KHCheck',
    },
  };
}

/** Milliseconds since 1970 as the API writes times: `2026-11-22T18:00:00Z`. */
export function apiTime(wall: number): string {
  return new Date(wall).toISOString().replace(/\.\d+Z$/, 'Z');
}

function secondsOf(ms: number | null): number {
  return ms === null ? 0 : Math.floor(ms / 1000);
}
