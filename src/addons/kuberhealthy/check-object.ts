/**
 * Reads Kuberhealthy's check objects: KuberhealthyCheck (`comcast.github.io/v1`, Kuberhealthy 2) with its
 * KuberhealthyState, and HealthCheck (`kuberhealthy.github.io/v2`, Kuberhealthy 3) with its status. Their contents are
 * untrusted and may have any shape.
 */
import { parseDuration } from '../../server/base/duration.ts';
import {
  child,
  isObject,
  list,
  text,
  textMap,
  type JsonObject,
} from '../../server/base/json-object.ts';

/** The Kuberhealthy major version that an object or report belongs to. */
export type KuberhealthyVersion = 2 | 3;

/** The singular name of a check resource, as in kubectl; `CheckResource` has the plural names. */
export type CheckResourceName = 'khcheck' | 'khjob' | 'healthcheck';

/** Each resource's API version and kind, for owner references. */
export const KINDS: Readonly<
  Record<CheckResourceName, { readonly apiVersion: string; readonly kind: string }>
> = {
  khcheck: { apiVersion: 'comcast.github.io/v1', kind: 'KuberhealthyCheck' },
  khjob: { apiVersion: 'comcast.github.io/v1', kind: 'KuberhealthyJob' },
  healthcheck: { apiVersion: 'kuberhealthy.github.io/v2', kind: 'HealthCheck' },
};

/** A check and its state, regardless of version. */
export interface CheckObject {
  readonly version: KuberhealthyVersion;
  readonly kind: CheckResourceName;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly intervalMs: number;
  readonly timeoutMs: number;
  readonly runsOnce: boolean;
  /** A job's phase; `''` before it has run, and for all other checks. */
  readonly phase: '' | 'Running' | 'Completed';
  /** True for a job without a state object, which cannot run. */
  readonly isBlocked: boolean;
  /** Creation time, milliseconds since 1970. */
  readonly madeAt: number;
  /** A check file for ndots' own checks, which run without a pod, or null if the check runs a pod. */
  readonly ownChecks: string | null;
  /** Labels and annotations for the check's pods, and the pod specification as written. */
  readonly podLabels: Readonly<Record<string, string>>;
  readonly podAnnotations: Readonly<Record<string, string>>;
  readonly podSpec: JsonObject;
  /** True if the object is being deleted but still has a finalizer. */
  readonly isGoing: boolean;
  readonly finalizers: readonly string[];
  /** Errors in the object that were ignored. */
  readonly remarks: readonly string[];
  readonly state: CheckCondition;
  /** Resource version of the object that stores the state, or `''` if it does not exist yet. */
  readonly stateVersion: string;
  /** Resource version of the check itself. */
  readonly objectVersion: string;
}

/** A check's state. Times are in milliseconds since 1970. */
export interface CheckCondition {
  readonly ok: boolean;
  readonly errors: readonly string[];
  /** The run that may report, or `''` if there is none. */
  readonly run: string;
  /** True if the run has neither reported nor timed out. */
  readonly isRunning: boolean;
  /** Start time of the last run, or null if the check has never run. */
  readonly begunAt: number | null;
  /** Duration of the last run, milliseconds. */
  readonly tookMs: number;
  readonly node: string;
  /** Arrival time of the last report. Only Kuberhealthy 2 stores this. */
  readonly toldAt: number | null;
  readonly authoritativePod: string;
  /** Counts and times that only Kuberhealthy 3 stores. */
  readonly successes: number;
  readonly failures: number;
  readonly failuresInARow: number;
  readonly lastOkAt: number | null;
  readonly lastFailureAt: number | null;
}

/** The annotation that lists ndots' own checks. */
export const OWN_CHECKS = 'ndots.dev/checks';
/** Annotations on a KuberhealthyState, which has no fields for when a run started or ended. */
export const BEGUN = 'ndots.dev/run-began';
/** See `BEGUN`. */
export const RUNNING = 'ndots.dev/run-is-on';

/** Kuberhealthy's default interval. */
const INTERVAL_MS = 10 * 60_000;
const TIMEOUT_MS: Readonly<Record<KuberhealthyVersion, number>> = { 2: 5 * 60_000, 3: 30_000 };
/** Minimum interval and timeout. */
const LEAST_MS = 1000;
const MOST_MS = 366 * 86_400_000;
/**
 * The latest valid date (ECMA-262, section 21.4.1.1), in seconds since 1970. Objects may contain any 64-bit integer.
 */
const LATEST_S = 8.64e12;

function noState(version: KuberhealthyVersion): CheckCondition {
  return {
    ok: version === 2,
    errors: [],
    run: '',
    isRunning: false,
    begunAt: null,
    tookMs: 0,
    node: '',
    toldAt: null,
    authoritativePod: '',
    successes: 0,
    failures: 0,
    failuresInARow: 0,
    lastOkAt: null,
    lastFailureAt: null,
  };
}

/** Reads a KuberhealthyCheck, with its KuberhealthyState if it already exists. */
export function readKhCheck(object: JsonObject, state: JsonObject | null): CheckObject {
  return { ...ofVersion2(object, state, 'khcheck'), runsOnce: false, phase: '' };
}

/** Reads a KuberhealthyJob, which runs once. Its KuberhealthyState may belong to a check with the same name. */
export function readKhJob(object: JsonObject, state: JsonObject | null): CheckObject {
  const phase = text(child(object, 'spec'), 'phase');
  const job = ofVersion2(object, state, 'khjob');
  const owner = list(child(state ?? {}, 'metadata'), 'ownerReferences').find((each) =>
    isObject(each),
  );
  const isOthers = isObject(owner) && text(owner, 'uid') !== job.uid;
  return {
    ...job,
    ...(isOthers && { state: noState(2) }),
    runsOnce: true,
    phase: phase === '' || phase === 'Running' ? phase : 'Completed',
  };
}

function ofVersion2(
  object: JsonObject,
  state: JsonObject | null,
  kind: CheckResourceName,
): Omit<CheckObject, 'runsOnce' | 'phase'> {
  const spec = child(object, 'spec');
  return {
    ...common(object, kind),
    podLabels: textMap(spec, 'extraLabels'),
    podAnnotations: textMap(spec, 'extraAnnotations'),
    podSpec: child(spec, 'podSpec'),
    state: state === null ? noState(2) : readKhState(state),
    stateVersion: state === null ? '' : text(child(state, 'metadata'), 'resourceVersion'),
  };
}

export function readHealthCheck(object: JsonObject): CheckObject {
  const spec = child(object, 'spec');
  const pod = child(spec, 'podSpec');
  const metadata = child(pod, 'metadata');
  return {
    ...common(object, 'healthcheck'),
    phase: '',
    podLabels: { ...textMap(metadata, 'labels'), ...textMap(spec, 'extraLabels') },
    podAnnotations: { ...textMap(metadata, 'annotations'), ...textMap(spec, 'extraAnnotations') },
    podSpec: child(pod, 'spec'),
    runsOnce: spec['singleRunOnly'] === true,
    state: readStatus(child(object, 'status')),
    stateVersion: text(child(object, 'metadata'), 'resourceVersion'),
  };
}

function common(
  object: JsonObject,
  kind: CheckResourceName,
): Omit<
  CheckObject,
  'podLabels' | 'podAnnotations' | 'podSpec' | 'runsOnce' | 'phase' | 'state' | 'stateVersion'
> {
  const version = kind === 'healthcheck' ? 3 : 2;
  const metadata = child(object, 'metadata');
  const spec = child(object, 'spec');
  const remarks: string[] = [];
  const time = (key: string, usual: number): number => {
    const given = spec[key];
    if (given === undefined || given === '' || given === null) return usual;
    const ms = typeof given === 'string' ? parseDuration(given) : null;
    if (ms !== null && ms > 0) return Math.min(MOST_MS, Math.max(LEAST_MS, ms));
    remarks.push(
      `spec.${key} is ${JSON.stringify(given).slice(0, 60)}, which is not a time such as 2m; using ${usual / 1000}s`,
    );
    return usual;
  };
  const own = textMap(metadata, 'annotations')[OWN_CHECKS] ?? '';
  return {
    version,
    kind,
    isBlocked: false,
    objectVersion: text(metadata, 'resourceVersion'),
    madeAt: timeOf(text(metadata, 'creationTimestamp')) ?? 0,
    namespace: text(metadata, 'namespace'),
    name: text(metadata, 'name'),
    uid: text(metadata, 'uid'),
    labels: textMap(metadata, 'labels'),
    intervalMs: time('runInterval', INTERVAL_MS),
    timeoutMs: time('timeout', TIMEOUT_MS[version]),
    ownChecks: own.trim() === '' ? null : own,
    isGoing: text(metadata, 'deletionTimestamp') !== '',
    finalizers: list(metadata, 'finalizers').filter((each) => typeof each === 'string'),
    remarks,
  };
}

function readKhState(object: JsonObject): CheckCondition {
  const spec = child(object, 'spec');
  const annotations = textMap(child(object, 'metadata'), 'annotations');
  const toldAt = timeOf(text(spec, 'LastRun'));
  return {
    ...noState(2),
    ok: spec['OK'] === true,
    errors: errorsOf(spec, 'Errors'),
    run: text(spec, 'uuid'),
    isRunning: annotations[RUNNING] === 'true' && text(spec, 'uuid') !== '',
    begunAt: timeOf(annotations[BEGUN] ?? '') ?? toldAt,
    tookMs: Math.max(0, parseDuration(text(spec, 'RunDuration')) ?? 0),
    node: text(spec, 'Node'),
    toldAt,
    authoritativePod: text(spec, 'AuthoritativePod'),
  };
}

function readStatus(status: JsonObject): CheckCondition {
  const run = text(status, 'currentUUID');
  const at = (key: string): number | null => {
    const seconds = numberOf(status, key);
    return seconds > 0 && seconds <= LATEST_S ? seconds * 1000 : null;
  };
  return {
    ...noState(3),
    ok: status['ok'] === true,
    errors: errorsOf(status, 'errors'),
    run,
    isRunning: run !== '',
    begunAt: at('lastRunUnix'),
    // The object has nanoseconds.
    tookMs: numberOf(status, 'runDuration') / 1e6,
    successes: numberOf(status, 'successCount'),
    failures: numberOf(status, 'failureCount'),
    failuresInARow: numberOf(status, 'consecutiveFailures'),
    lastOkAt: at('lastOKUnix'),
    lastFailureAt: at('lastFailureUnix'),
  };
}

function errorsOf(object: JsonObject, key: string): string[] {
  return list(object, key).map((each) => (typeof each === 'string' ? each : JSON.stringify(each)));
}

function numberOf(object: JsonObject, key: string): number {
  const value = object[key];
  return typeof value === 'number' && value > 0 ? value : 0;
}

function timeOf(written: string): number | null {
  const ms = Date.parse(written);
  return Number.isNaN(ms) ? null : ms;
}

/** True if the state belongs to an earlier job with the same name. */
export function isOfBefore({ kind, phase, state, madeAt }: CheckObject): boolean {
  return kind === 'khjob' && phase === '' && state.begunAt !== null && state.begunAt < madeAt;
}

/** `namespace/name`. */
export function fullName({ namespace, name }: Pick<CheckObject, 'namespace' | 'name'>): string {
  return `${namespace}/${name}`;
}

export function keyOf({
  kind,
  namespace,
  name,
}: Pick<CheckObject, 'kind' | 'namespace' | 'name'>): string {
  return `${kind} ${namespace}/${name}`;
}

/** The containers in a pod specification. Entries that are not objects are left out. */
export function containersOf(spec: JsonObject, key: string): readonly JsonObject[] {
  return list(spec, key).filter(isObject);
}
