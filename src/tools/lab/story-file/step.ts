/** Defines a kind of step by its keys, results and action. */
import type { JsonObject } from '../../../server/base/json-object.ts';
import type { ImpliedPod } from '../../../server/kube/manifests/pods.ts';
import type { PacketRow } from '../capture.ts';
import type { LabCluster } from '../cluster.ts';
import type { Undo } from '../faults.ts';
import type { Stage, StoryPlan } from '../story.ts';
import type { Results } from './expression.ts';
import type { YamlFields, YamlShape, ValuesOf } from '../../../server/kube/manifests/yaml-shape.ts';
import type { Script } from '../../resolver/answers-file.ts';
import type { StepKind } from './story-reading.ts';

export interface StoryRun {
  readonly stage: Stage;
  readonly lab: LabCluster;
  readonly results: Map<string, Results>;
  /** By step name. */
  readonly undo: Map<string, Map<string, Undo>>;
  /** The slices before their endpoints changed, including details of each pod. */
  readonly memory: { slices?: readonly JsonObject[] };
  /** The packets that the act shows, which are those from the first step that captured any. */
  shown: readonly PacketRow[];
}

/** A story in virtual time, with its lookups and the internet's answers. */
export interface ModelRun {
  readonly pods: readonly ImpliedPod[];
  readonly plan: StoryPlan;
  script: Script;
  readonly results: Map<string, Results>;
  /** Pods without IPv6, where getent does not query AAAA. */
  readonly ipv4Only: Set<string>;
  shown: readonly PacketRow[];
}

export interface StoryStep {
  readonly kind: string;
  /** Expectations use this name to refer to its results. */
  readonly name: string;
  readonly results: readonly string[];
  readonly within: readonly StoryStep[];
  run(run: StoryRun): Promise<void>;
  /** Null: no effect in virtual time. */
  readonly model: ((run: ModelRun) => Promise<void>) | null;
}

/** Declares a kind of step whose value is a mapping. */
export function kind<F extends YamlFields>(declared: {
  readonly help: string;
  readonly fields: F;
  readonly results?: Readonly<Record<string, string>>;
  readonly programs?: readonly string[];
  act(values: ValuesOf<F>, run: StoryRun, name: string): Promise<Results | void> | Results | void;
  model?(values: ValuesOf<F>, run: ModelRun): Promise<Results | void> | Results | void;
}): StepKind {
  return { results: {}, programs: [], ...declared, bare: null } as unknown as StepKind;
}

/** Declares a kind of step whose value is not a mapping. */
export function bareKind<T>(declared: {
  readonly help: string;
  readonly bare: YamlShape<T>;
  act(value: T, run: StoryRun, name: string): Promise<Results | void> | Results | void;
  model?(value: T, run: ModelRun): Promise<Results | void> | Results | void;
}): StepKind {
  return { results: {}, programs: [], fields: {}, ...declared } as unknown as StepKind;
}

export async function runSteps(steps: readonly StoryStep[], run: StoryRun): Promise<void> {
  for (const step of steps) await step.run(run);
}
