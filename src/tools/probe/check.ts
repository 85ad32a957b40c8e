/**
 * The interface for kinds of checks, with their input and result. Each kind has a file in `checks/` and is listed in
 * `kinds.ts`.
 */
import type { Clock } from '../../server/base/clock.ts';
import type { YamlFields, ValuesOf } from '../../server/kube/manifests/yaml-shape.ts';
import type { ProbeObjects } from './cluster-objects.ts';
import type { ProbeNetwork, ProbeServer } from './network.ts';
import type { Random } from '../../server/base/random.ts';

/**
 * A target's state:
 *
 * - `ok`
 * - `warning`: works, but with a fault (slow, lost queries)
 * - `failed`: a client would fail
 * - `unknown`: could not be determined (no known replicas, a local port in use)
 */
export type CheckState = 'ok' | 'warning' | 'failed' | 'unknown';

/** All states, best first. `unknown` is worse than a warning because it may hide a failure. */
export const checkStates: readonly CheckState[] = ['ok', 'warning', 'unknown', 'failed'];

export interface Observation {
  /** The target, which is the same in each round: `10.244.1.5:53`, a name, or a client. */
  readonly target: string;
  readonly state: CheckState;
  /** A one-line description. */
  readonly text: string;
  /** The latency as seen by a client, or null if there was no reply. */
  readonly tookMs: number | null;
  /** The number of queries sent, and how many of them were not answered. */
  readonly sent: number;
  readonly lost: number;
}

export interface ProbeContext {
  readonly network: ProbeNetwork;
  readonly random: Random;
  readonly clock: Clock;
  /** Temporary objects that a check may create in the cluster. */
  readonly objects: ProbeObjects;
  /** The service addresses that clients query. */
  readonly vip: readonly ProbeServer[];
  /** The servers behind the service, by their own addresses. */
  readonly replicas: readonly ProbeServer[];
  readonly timeoutMs: number;
  readonly tries: number;
  /** The search path used by clients in pods, without trailing dots. */
  readonly search: readonly string[];
  readonly ndots: number;
  /** Without a trailing dot. */
  readonly clusterDomain: string;
}

export interface CheckKind {
  /** In lower case with dashes, for use in YAML and metrics. */
  readonly name: string;
  /** One line. */
  readonly summary: string;
  /** The YAML parameters specific to this kind. */
  readonly parameters: YamlFields;
  readonly needs: 'vip' | 'replicas' | 'any';
  /** Builds the check from parsed parameters. `values` contains a value for each of them. */
  prepare(values: Readonly<Record<string, unknown>>): RunCheck;
}

export type RunCheck = (context: ProbeContext) => Promise<readonly Observation[]>;

/** Defines a kind of check with typed parameters. */
export function checkKind<T extends YamlFields>(kind: {
  readonly name: string;
  readonly summary: string;
  readonly needs: CheckKind['needs'];
  readonly parameters: T;
  run(values: ValuesOf<T>, context: ProbeContext): Promise<readonly Observation[]>;
}): CheckKind {
  return {
    name: kind.name,
    summary: kind.summary,
    needs: kind.needs,
    parameters: kind.parameters,
    prepare: (values) => (context) => kind.run(values as ValuesOf<T>, context),
  };
}

/** The worst of the given states, or `ok` if there are none. */
export function worst(states: Iterable<CheckState>): CheckState {
  let found = 0;
  for (const state of states) found = Math.max(found, checkStates.indexOf(state));
  return checkStates[found]!;
}
