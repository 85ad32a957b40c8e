/** What a kind of check is, what it is given, and what it finds. The kinds: `checks/`, one file each; their table: `kinds.ts`. */
import type { Clock } from '../base/clock.ts';
import type { YamlFields, ValuesOf } from '../kube/manifests/yaml-shape.ts';
import type { ProbeObjects } from './cluster-objects.ts';
import type { ProbeNetwork, ProbeServer } from './network.ts';
import type { Random } from '../base/random.ts';

/**
 * How something is:
 *
 * - `ok`
 * - `warning`: works, but not as it should (slow, queries lost)
 * - `failed`: a client would fail
 * - `unknown`: could not be found out (no replicas known, a port in use here)
 */
export type CheckState = 'ok' | 'warning' | 'failed' | 'unknown';

/** All states, best first; `unknown` is worse than a warning, for nobody knows. */
export const checkStates: readonly CheckState[] = ['ok', 'warning', 'unknown', 'failed'];

/** What one check found about one target. */
export interface Observation {
  /** What was looked at: `10.244.1.5:53`, a name, a client. Stays the same from round to round. */
  readonly target: string;
  readonly state: CheckState;
  /** One line for a person. */
  readonly text: string;
  /** What a client would have waited; null where nothing came. */
  readonly tookMs: number | null;
  /** Queries that were sent, and those of them that nobody answered. */
  readonly sent: number;
  readonly lost: number;
}

/** What a check works with. */
export interface ProbeContext {
  readonly network: ProbeNetwork;
  readonly random: Random;
  readonly clock: Clock;
  /** What may be made in the cluster, for a while. */
  readonly objects: ProbeObjects;
  /** The addresses that clients ask: the service's. */
  readonly vip: readonly ProbeServer[];
  /** The servers behind it, each by its own address. */
  readonly replicas: readonly ProbeServer[];
  readonly timeoutMs: number;
  readonly tries: number;
  /** As clients in pods have it: names of a namespace, of the cluster. Without final dots. */
  readonly search: readonly string[];
  readonly ndots: number;
  /** Without a final dot. */
  readonly clusterDomain: string;
}

/** One kind of check. */
export interface CheckKind {
  /** In lower case with dashes; YAML and metrics have it. */
  readonly name: string;
  /** One line. */
  readonly summary: string;
  /** What such a check takes in YAML besides what all do. */
  readonly parameters: YamlFields;
  /** Which servers it cannot do without. */
  readonly needs: 'vip' | 'replicas' | 'any';
  /** The check with what has been read; `values` has a value for each parameter. */
  prepare(values: Readonly<Record<string, unknown>>): RunCheck;
}

/** Runs a check once. */
export type RunCheck = (context: ProbeContext) => Promise<readonly Observation[]>;

/** A kind of check whose parameters have types. */
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

/** The worst of some states; `ok` of none. */
export function worst(states: Iterable<CheckState>): CheckState {
  let found = 0;
  for (const state of states) found = Math.max(found, checkStates.indexOf(state));
  return checkStates[found]!;
}
