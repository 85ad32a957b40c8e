/** A check's state transitions, and how they are stored in each version's objects. No I/O. */
import { printDuration } from '../../server/base/duration.ts';
import type { JsonObject } from '../../server/base/json-object.ts';
import { BEGUN, fullName, RUNNING, type CheckObject, type CheckCondition } from './check-object.ts';
import { boundedErrors } from './error-texts.ts';

/** State at the start of a run. */
export function begun(state: CheckCondition, run: string, wall: number): CheckCondition {
  return { ...state, run, isRunning: true, begunAt: wall };
}

/** The state after abandoning a run, as if it had never started. */
export function givenUp(state: CheckCondition): CheckCondition {
  return { ...state, run: '', isRunning: false };
}

/** The state after a run has ended, with or without errors. */
export function ended(
  { version, state }: CheckObject,
  { ok, errors, node, authoritativePod }: RunOutcome,
  wall: number,
): CheckCondition {
  return {
    ...state,
    ok,
    errors: boundedErrors(errors),
    // Version 2 keeps the run and accepts a second report for it.
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

export interface RunResult {
  readonly ok: boolean;
  readonly errors: readonly string[];
}

interface RunOutcome extends RunResult {
  /** The node of its pod, or empty if unknown. */
  readonly node: string;
  /** The replica that wrote the result. */
  readonly authoritativePod: string;
}

/** The error for a run that did not report. Alerts match on its wording, which differs between versions. */
export function timedOut(check: CheckObject, why: string): string {
  const { version, state, timeoutMs } = check;
  const because = why === '' ? '' : `: ${why}`;
  if (version === 2)
    return `${executionError(check)}: timed out waiting for checker pod to report in${because}`;
  const at = apiTime(state.begunAt ?? 0);
  return `check run ${state.run} timed out after ${printDuration(timeoutMs)} (started at ${at})${because}`;
}

/** The error for a pod that could not be created, using the version's own wording. */
export function podNotMade(check: CheckObject, why: string): string {
  return check.version === 2
    ? `${executionError(check)}: failed to create pod for checker: ${why}`
    : `failed to create check pod: ${why}`;
}

function executionError(check: CheckObject): string {
  return `${check.kind === 'khjob' ? 'Job' : 'Check'} execution error: ${fullName(check)}`;
}

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

/** Formats milliseconds since 1970 as the API server does: `2026-11-22T18:00:00Z`. */
export function apiTime(wall: number): string {
  return new Date(wall).toISOString().replace(/\.\d+Z$/, 'Z');
}

function secondsOf(ms: number | null): number {
  return ms === null ? 0 : Math.floor(ms / 1000);
}
