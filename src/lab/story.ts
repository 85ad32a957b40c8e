/** What a story is: a failure that really happened, played once with its flaw and once with its cure, and judged by what is seen. */
import type { CaptureFilter, PacketRow } from './capture.ts';
import type { LabCluster } from './cluster.ts';
import type { Need } from './machine.ts';
import type { Environment } from '../base/environment.ts';
import type { ClusterPlan, RuleMode } from './plan.ts';

/** One thing that is claimed, and what was seen. */
export interface Fact {
  /** `queries for one name`. */
  readonly what: string;
  readonly expected: string;
  readonly found: string;
  readonly holds: boolean;
}

/** One performance: the flaw, or a cure. */
export interface Act {
  readonly kind: 'flaw' | 'cure';
  /** `glibc, ndots:5, five search domains`. */
  readonly title: string;
  /** What was run, as a person would type it. */
  readonly command: string;
  /** Packets of DNS, in order; empty where they say nothing. */
  readonly packets: readonly PacketRow[];
  readonly facts: readonly Fact[];
}

/** What stories are played with. */
export interface Stage {
  /** The cluster of a story. What a plan leaves out is as most clusters have it. */
  start(plan: StoryPlan): Promise<LabCluster>;
  /** Packets of one machine's link while something is done. */
  capture<T>(
    machine: string,
    filter: CaptureFilter,
    act: () => Promise<T> | T,
  ): Promise<Captured<T>>;
  /** The DNS server of the lab: `ndots`, or `CoreDNS`. */
  readonly server: 'ndots' | 'CoreDNS';
  /** The words that begin a command of ndots, for clients that are modelled. */
  readonly ndots: readonly string[];
  /** How the rules of services are written, unless a story says it. */
  readonly mode: RuleMode;
  /** Programs are looked for in its `PATH`. */
  readonly env: Environment;
}

/** What was done, and the packets meanwhile. */
export interface Captured<T> {
  readonly result: T;
  readonly packets: readonly PacketRow[];
}

/** A cluster, as far as a story says something about it. */
export interface StoryPlan extends Partial<Omit<ClusterPlan, 'manifests' | 'internet'>> {
  /** Kubernetes objects, YAML. */
  readonly objects: string;
  /** Rules of an answers file: what the internet says. */
  readonly internet?: readonly object[] | ClusterPlan['internet'];
}

/** What a story says of itself. */
export interface StoryHead {
  /** `twelve-queries`. */
  readonly name: string;
  readonly title: string;
  /** Where it was told first. */
  readonly source: string;
  readonly preconditions: readonly string[];
  readonly trigger: string;
}

/** A failure that can be played. */
export interface Story extends StoryHead {
  readonly needs: readonly Need[];
  /** Seconds that it takes, about. */
  readonly seconds: number;
  /** Plays it in namespaces; null: no kernel that can be counted on does that, there is only the model. */
  readonly play: ((stage: Stage) => Promise<readonly Act[]>) | null;
  /** The same in virtual time, for machines where it cannot be played; null: there is no model of it. */
  readonly model: (() => Promise<readonly Act[]>) | null;
}

/** How a story ended: plain data. */
export interface StoryOutcome {
  readonly story: StoryHead;
  /** `real`: in namespaces. `model`: in virtual time. */
  readonly how: 'real' | 'model';
  readonly server: string;
  readonly acts: readonly Act[];
  readonly tookMs: number;
}

/** Whether everything was seen that the story tells. */
export function isAsTold({ acts }: StoryOutcome): boolean {
  return acts.length > 0 && acts.every(({ facts }) => facts.every(({ holds }) => holds));
}

/** A fact that two values are the same. */
export function equal(what: string, expected: number | string, found: number | string): Fact {
  return { what, expected: String(expected), found: String(found), holds: expected === found };
}

/** A fact that a number lies within bounds, both included. */
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

/** A fact that something is so. */
export function holds(what: string, yes: boolean, found: string = yes ? 'yes' : 'no'): Fact {
  return { what, expected: 'yes', found, holds: yes };
}

/** What of a story goes into its outcome. */
export function headOf({ name, title, source, preconditions, trigger }: Story): StoryHead {
  return { name, title, source, preconditions, trigger };
}
