/**
 * A story, which is a real incident. It is played once with the fault and once with the fix, and then judged by its
 * observations.
 */
import type { CaptureFilter, PacketRow } from './capture.ts';
import type { LabCluster } from './cluster.ts';
import type { Need } from './machine.ts';
import type { Environment } from '../../server/base/environment.ts';
import type { ClusterPlan, RuleMode } from './cluster-plan.ts';

/** A claim and what was observed. */
export interface Fact {
  /** The observed quantity: `queries for one name`. */
  readonly what: string;
  readonly expected: string;
  readonly found: string;
  readonly holds: boolean;
}

/** One run, either of the fault or of a fix. */
export interface Act {
  readonly kind: 'flaw' | 'cure';
  /** `glibc, ndots:5, five search domains`. */
  readonly title: string;
  /** The command as a user would type it. */
  readonly command: string;
  /** DNS packets in order. Empty if they are irrelevant. */
  readonly packets: readonly PacketRow[];
  readonly facts: readonly Fact[];
}

export interface Stage {
  /** Starts a story's cluster. Anything missing from the plan has a default value. */
  start(plan: StoryPlan): Promise<LabCluster>;
  /** Captures the packets on a machine's link while `run` executes. */
  capture<T>(
    machine: string,
    filter: CaptureFilter,
    act: () => Promise<T> | T,
  ): Promise<Captured<T>>;
  readonly server: 'ndots' | 'CoreDNS';
  /** The beginning of an ndots command line, for modelled clients. */
  readonly ndots: readonly string[];
  /** The mode of kube-proxy's rules, unless the story specifies one. */
  readonly mode: RuleMode;
  /** Programs are searched for in its `PATH`. */
  readonly env: Environment;
}

/** An action's result, and the packets captured during it. */
export interface Captured<T> {
  readonly result: T;
  readonly packets: readonly PacketRow[];
}

/** The parts of a cluster that are specified by a story. */
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
  /** Plays it in namespaces. Null if only a model exists, because no kernel feature reproduces it reliably. */
  readonly play: ((stage: Stage) => Promise<readonly Act[]>) | null;
  /** Plays it in virtual time, for machines that cannot play it for real. Null if there is no model. */
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

/** True if every observation matches the story's claims. */
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
): Fact {
  const print = (value: number): string => String(Number(value.toFixed(2)));
  return {
    what,
    expected: most === Infinity ? `at least ${print(least)}` : `${print(least)} to ${print(most)}`,
    found: print(found),
    holds: found >= least && found <= most,
  };
}

export function holds(what: string, yes: boolean, found: string): Fact {
  return { what, expected: 'yes', found, holds: yes };
}

/** An act that shows no packets. */
export function act(
  kind: Act['kind'],
  title: string,
  command: string,
  facts: readonly Fact[],
): Act {
  return { kind, title, command, packets: [], facts };
}

/** The part of a story that is included in its outcome. */
export function headOf({ name, title, source, preconditions, trigger }: Story): StoryHead {
  return { name, title, source, preconditions, trigger };
}
