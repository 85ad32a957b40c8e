/** What the shapes of a story file find besides values: names that must be known, Corefiles, programs that steps need. */
import type { Problem } from '../../base/problem.ts';
import {
  YamlReading,
  text,
  type YamlFields,
  type YamlShape,
} from '../../kube/manifests/yaml-shape.ts';
import type { DocumentPath } from '../../kube/manifests/yaml-document.ts';

/** A name in a story that must be known: a pod, a node, a service. It is looked up when the cluster has been read. */
export interface Reference {
  readonly path: DocumentPath;
  readonly kind: 'pod' | 'node' | 'machine' | 'service' | 'server';
  readonly name: string;
}

/** A Corefile of a story. */
export interface FoundCorefile {
  readonly path: DocumentPath;
  readonly text: string;
  /** Where it lies; null: in the story itself. */
  readonly file: string | null;
}

/** What is found while a story is read. */
export class StoryReading extends YamlReading {
  readonly references: Reference[] = [];
  /** What is wrong with other files that it names. */
  readonly elsewhere: Problem[] = [];
  /** Programs that steps need. */
  readonly programs: Set<string> = new Set<string>();
  /** The kinds of steps, by the keys under which they stand. */
  readonly kinds: Readonly<Record<string, StepKind>>;
  /** Corefiles in it, for who can read them. */
  readonly corefiles: FoundCorefile[] = [];
  /** The story, as its path was given. */
  readonly file: string;

  constructor(file: string, kinds: Readonly<Record<string, StepKind>>) {
    super();
    this.file = file;
    this.kinds = kinds;
  }
}

/** A kind of step, as far as it is read; `step.ts` says what it does. */
export interface StepKind {
  /** One line. */
  readonly help: string;
  readonly fields: YamlFields;
  /** What stands there in the place of a mapping; null: it is always a mapping. */
  readonly bare: YamlShape<unknown> | null;
  /** What it finds: names and meanings. */
  readonly results: Readonly<Record<string, string>>;
  /** Programs of this machine that it needs. */
  readonly programs: readonly string[];
  /** Its values, the story that is played (`StoryRun`), and the name of the step; gives `Results`, or nothing. */
  act(values: never, run: never, name: string): unknown;
}

/** The name of something of the cluster. */
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
