/** State collected while parsing a story file: names to look up, Corefiles, and programs that steps need. */
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

/** A reference to a pod, node or service. It is resolved once the cluster has been parsed. */
export interface Reference {
  readonly path: DocumentPath;
  readonly kind: 'pod' | 'node' | 'machine' | 'service' | 'server';
  readonly name: string;
}

export interface FoundCorefile {
  readonly path: DocumentPath;
  readonly text: string;
  /** Null if the Corefile is part of the story itself. */
  readonly file: string | null;
}

export class StoryReading extends YamlReading {
  readonly references: Reference[] = [];
  /** Errors in other files that it refers to. */
  readonly elsewhere: Problem[] = [];
  readonly programs: Set<string> = new Set<string>();
  readonly kinds: Readonly<Record<string, StepKind>>;
  /** For callers that can check them. */
  readonly corefiles: FoundCorefile[] = [];
  readonly file: string;

  constructor(file: string, kinds: Readonly<Record<string, StepKind>>) {
    super();
    this.file = file;
    this.kinds = kinds;
  }
}

/** The part of a kind of step that is needed for parsing. The rest is in `step.ts`. */
export interface StepKind {
  readonly help: string;
  readonly fields: YamlFields;
  /** The shape of a value that is not a mapping, or null if it always is one. */
  readonly bare: YamlShape<unknown> | null;
  readonly results: Readonly<Record<string, string>>;
  /** Programs that this machine must have. */
  readonly programs: readonly string[];
  /** Runs the step with its values, the story (`StoryRun`) and the step's name. Returns `Results` or nothing. */
  act(values: never, run: never, name: string): unknown;
  /** Runs the step in virtual time (`ModelRun`). */
  model?(values: never, run: never): unknown;
}

/** Marks an act, step or expectation that applies to only one of the servers. */
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
