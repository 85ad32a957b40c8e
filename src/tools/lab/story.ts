/** A story: a real incident, played once with the fault and once with the fix, and judged by observations. */
import type { CaptureFilter, PacketRow } from './capture.ts';
import type { LabCluster } from './cluster.ts';
import type { Need } from './machine.ts';
import type { Environment } from '../../server/base/environment.ts';
import type { ClusterPlan, RuleMode } from './cluster-plan.ts';

/** One claim and the observation. */
export interface Fact {
  /** The observed quantity: `queries for one name`. */
  readonly what: string;
  readonly expected: string;
  readonly found: string;
  readonly holds: boolean;
}

/** One performance, of the fault or of a fix. */
export interface Act {
  readonly kind: 'flaw' | 'cure';
  /** `glibc, ndots:5, five search domains`. */
  readonly title: string;
  /** The command as a person would type it. */
  readonly command: string;
  /** DNS packets in order; empty if they do not matter. */
  readonly packets: readonly PacketRow[];
  readonly facts: readonly Fact[];
}

export interface Stage {
  /** Starts the cluster of a story. Missing fields of the plan have default values. */
  start(plan: StoryPlan): Promise<LabCluster>;
  /** Captures the packets of one machine's link while `run` executes. */
  capture<T>(
    machine: string,
    filter: CaptureFilter,
    act: () => Promise<T> | T,
  ): Promise<Captured<T>>;
  readonly server: 'ndots' | 'CoreDNS';
  /** The command line that begins a command of ndots, for modelled clients. */
  readonly ndots: readonly string[];
  /** The mode of kube-proxy's rules, unless the story states one. */
  readonly mode: RuleMode;
  /** Its `PATH` is searched for programs. */
  readonly env: Environment;
}

/** The result of an action, and the packets during it. */
export interface Captured<T> {
  readonly result: T;
  readonly packets: readonly PacketRow[];
}

/** The parts of a cluster that a story states. */
export interface StoryPlan extends Partial<Omit<ClusterPlan, 'manifests'>> {
  readonly objects: string;
}

export interface StoryHead {
  /** `twelve-queries`. */
  readonly name: string;
  readonly title: string;
  readonly source: string;
  readonly preconditions: readonly string[];
  readonly trigger: string;
}

/** An incident that can be played. */
export interface Story extends StoryHead {
  readonly needs: readonly Need[];
  /** The approximate duration in seconds. */
  readonly seconds: number;
  /** Plays it in namespaces; null: no kernel feature reproduces it reliably, and there is only the model. */
  readonly play: ((stage: Stage) => Promise<readonly Act[]>) | null;
  /** Plays it in virtual time, for machines that cannot play it for real; null: there is no model. */
  readonly model: (() => Promise<readonly Act[]>) | null;
}

export interface StoryOutcome {
  readonly story: StoryHead;
  /** `real`: in namespaces. `model`: in virtual time. */
  readonly how: 'real' | 'model';
  readonly server: string;
  readonly acts: readonly Act[];
  readonly tookMs: number;
}

/** True if all observations match the story's claims. */
export function isAsTold({ acts }: StoryOutcome): boolean {
  return acts.length > 0 && acts.every(({ facts }) => facts.every(({ holds }) => holds));
}

export function equal(what: string, expected: number | string, found: number | string): Fact {
  return { what, expected: String(expected), found: String(found), holds: expected === found };
}

/** Bounds are inclusive. */
export function within(
  what: string,
  [least, most]: readonly [number, number],
  found: number,
  unit = '',
): Fact {
  const print = (value: number): string => `${Number(value.toFixed(2))}${unit}`;
  return {
    what,
    expected: most === Infinity ? `at least ${print(least)}` : `${print(least)} to ${print(most)}`,
    found: print(found),
    holds: found >= least && found <= most,
  };
}

export function holds(what: string, yes: boolean, found: string = yes ? 'yes' : 'no'): Fact {
  return { what, expected: 'yes', found, holds: yes };
}

/** The part of a story that its outcome contains. */
export function headOf({ name, title, source, preconditions, trigger }: Story): StoryHead {
  return { name, title, source, preconditions, trigger };
}
