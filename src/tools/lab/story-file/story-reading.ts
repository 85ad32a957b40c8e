/** State that is collected while a story file is parsed: names to look up, Corefiles, programs that steps need. */
import type { Problem } from '../../../server/base/problem.ts';
import {
  optional,
  YamlReading,
  text,
  word,
  type YamlField,
  type YamlFields,
  type YamlShape,
} from '../../../server/kube/manifests/yaml-shape.ts';
import type { DocumentPath } from '../../../server/kube/manifests/yaml-document.ts';

/** The name of a pod, a node or a service in a story. It is looked up when the cluster has been parsed. */
export interface Reference {
  readonly path: DocumentPath;
  readonly kind: 'pod' | 'node' | 'machine' | 'service' | 'server';
  readonly name: string;
}

export interface FoundCorefile {
  readonly path: DocumentPath;
  readonly text: string;
  /** Null: the Corefile is in the story itself. */
  readonly file: string | null;
}

export class StoryReading extends YamlReading {
  readonly references: Reference[] = [];
  /** Mistakes in the other files that it names. */
  readonly elsewhere: Problem[] = [];
  readonly programs: Set<string> = new Set<string>();
  readonly kinds: Readonly<Record<string, StepKind>>;
  /** For a caller that can check them. */
  readonly corefiles: FoundCorefile[] = [];
  readonly file: string;

  constructor(file: string, kinds: Readonly<Record<string, StepKind>>) {
    super();
    this.file = file;
    this.kinds = kinds;
  }
}

/** A kind of step, as far as parsing is concerned; `step.ts` has the rest. */
export interface StepKind {
  readonly help: string;
  readonly fields: YamlFields;
  /** The shape of a value that is not a mapping; null: it is always a mapping. */
  readonly bare: YamlShape<unknown> | null;
  readonly results: Readonly<Record<string, string>>;
  /** Programs that it needs on this machine. */
  readonly programs: readonly string[];
  /** Runs it with its values, the story (`StoryRun`) and the name of the step. Returns `Results` or nothing. */
  act(values: never, run: never, name: string): unknown;
  /** Runs it in virtual time (`ModelRun`). */
  model?(values: never, run: never): unknown;
}

/** An act, a step or an expectation that only one of the servers has. */
export const onlyWith: YamlField<'ndots' | 'CoreDNS' | null> = optional(
  word(['ndots', 'CoreDNS']),
  null,
  'only if this server answers',
);

export function named(kind: Reference['kind'], placeholder: string): YamlShape<string> {
  return {
    placeholder,
    read(value, path, reading: StoryReading) {
      const name = text.read(value, path, reading);
      if (name !== '') reading.references.push({ path, kind, name });
      return name;
    },
  };
}
