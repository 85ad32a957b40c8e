/**
 * The interface of a kind of check: its input and its result. The kinds are in `checks/`, one file
 * each; their table is `kinds.ts`.
 */
import type { Clock } from '../../server/base/clock.ts';
import type { YamlFields, ValuesOf } from '../../server/kube/manifests/yaml-shape.ts';
import type { ProbeObjects } from './cluster-objects.ts';
import type { ProbeNetwork, ProbeServer } from './network.ts';
import type { Random } from '../../server/base/random.ts';

/**
 * The state of a target:
 *
 * - `ok`
 * - `warning`: works, but not as it should (slow, queries lost)
 * - `failed`: a client would fail
 * - `unknown`: could not be determined (no replicas known, a port in use here)
 */
export type CheckState = 'ok' | 'warning' | 'failed' | 'unknown';

/** All states, best first; `unknown` ranks worse than a warning, because it may hide anything. */
export const checkStates: readonly CheckState[] = ['ok', 'warning', 'unknown', 'failed'];

/** The result of one check for one target. */
export interface Observation {
  /** The target, the same in every round: `10.244.1.5:53`, a name, a client. */
  readonly target: string;
  readonly state: CheckState;
  /** One line as text. */
  readonly text: string;
  /** Latency for a client; null if there was no reply. */
  readonly tookMs: number | null;
  /** The number of queries sent, and of those without a reply. */
  readonly sent: number;
  readonly lost: number;
}

export interface ProbeContext {
  readonly network: ProbeNetwork;
  readonly random: Random;
  readonly clock: Clock;
  /** The objects that a check may create in the cluster temporarily. */
  readonly objects: ProbeObjects;
  /** The service's addresses, which clients ask. */
  readonly vip: readonly ProbeServer[];
  /** The servers behind the service, each by its own address. */
  readonly replicas: readonly ProbeServer[];
  readonly timeoutMs: number;
  readonly tries: number;
  /** The search path of clients in pods, without final dots. */
  readonly search: readonly string[];
  readonly ndots: number;
  /** Without a final dot. */
  readonly clusterDomain: string;
}

export interface CheckKind {
  /** Lower case with dashes; used in YAML and metrics. */
  readonly name: string;
  /** One line. */
  readonly summary: string;
  /** The YAML parameters of this kind, in addition to those of every check. */
  readonly parameters: YamlFields;
  /** The servers that the check needs. */
  readonly needs: 'vip' | 'replicas' | 'any';
  /** Makes the check from parsed parameters; `values` has a value for each parameter. */
  prepare(values: Readonly<Record<string, unknown>>): RunCheck;
}

/** Runs a check once. */
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

/** The worst of some states; `ok` if there are none. */
export function worst(states: Iterable<CheckState>): CheckState {
  let found = 0;
  for (const state of states) found = Math.max(found, checkStates.indexOf(state));
  return checkStates[found]!;
}
