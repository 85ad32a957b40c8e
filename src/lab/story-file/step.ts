/** What a step of a story is: its keys, its results, and what it does. */
import type { JsonObject } from '../../base/json-object.ts';
import type { PacketRow } from '../capture.ts';
import type { LabCluster } from '../cluster.ts';
import type { Undo } from '../faults.ts';
import type { Stage } from '../story.ts';
import type { Results } from './expression.ts';
import type { YamlFields, YamlShape, ValuesOf } from '../../kube/manifests/yaml-shape.ts';
import type { StepKind } from './story-reading.ts';

/** A story that is being played. */
export interface StoryRun {
  readonly stage: Stage;
  readonly lab: LabCluster;
  /** By the names of steps. */
  readonly results: Map<string, Results>;
  /** Faults that can be taken away, by the names of steps. */
  readonly undo: Map<string, Map<string, Undo>>;
  /** Slices as they were before endpoints changed: what is known of each pod. */
  readonly memory: { slices?: readonly JsonObject[] };
  /** Packets for the ladder of the act: those of the first step that has any. */
  shown: readonly PacketRow[];
}

/** A step that has been read. */
export interface StoryStep {
  readonly kind: string;
  /** The name by which its results are called. */
  readonly name: string;
  /** What its results are called. */
  readonly results: readonly string[];
  /** Steps within it. */
  readonly within: readonly StoryStep[];
  run(run: StoryRun): Promise<void>;
}

/** Declares a kind whose value is a mapping. */
export function kind<F extends YamlFields>(declared: {
  readonly help: string;
  readonly fields: F;
  readonly results?: Readonly<Record<string, string>>;
  readonly programs?: readonly string[];
  act(values: ValuesOf<F>, run: StoryRun, name: string): Promise<Results | void> | Results | void;
}): StepKind {
  return { results: {}, programs: [], ...declared, bare: null } as unknown as StepKind;
}

/** Declares a kind whose value is one thing. */
export function bareKind<T>(declared: {
  readonly help: string;
  readonly bare: YamlShape<T>;
  act(value: T, run: StoryRun, name: string): Promise<Results | void> | Results | void;
}): StepKind {
  return { results: {}, programs: [], fields: {}, ...declared } as unknown as StepKind;
}

/** Does steps one after the other. */
export async function runSteps(steps: readonly StoryStep[], run: StoryRun): Promise<void> {
  for (const step of steps) await step.run(run);
}
