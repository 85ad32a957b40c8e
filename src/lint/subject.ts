/** What the rules look at: Corefiles that were understood as far as they go, Kubernetes objects, and what they are for. */
import type { DocumentPath } from '../kube/manifests/yaml-document.ts';
import type { JsonObject } from '../base/json-object.ts';
import type { Place, Problem } from '../base/problem.ts';
import type { Positions } from '../corefile/positions.ts';
import type { Properties } from '../corefile/properties.ts';
import type { Occurrence, Syntax } from '../corefile/syntax.ts';
import type { Corefile, Directive, Property, ServerBlock } from '../corefile/tree.ts';
import type { LintTarget } from './target.ts';

/** All that was read together. */
export interface Subject {
  readonly corefiles: readonly LintedCorefile[];
  /** Kubernetes objects, kubelet settings, and values of Helm charts (kind `HelmValues`). */
  readonly objects: readonly LintObject[];
  /** Files in the form of resolv.conf. */
  readonly resolvConfs: readonly { readonly file: string; readonly text: string }[];
  /** What the configuration is for; null: neither an option nor an image says so. */
  readonly target: LintTarget | null;
  /** The Corefile that runs now, where it was given: for what a change does that a file alone does not. */
  readonly running: LintedCorefile | null;
}

/** A Kubernetes object, or another YAML document that has its say in DNS. */
export interface LintObject {
  readonly file: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly value: JsonObject;
  /** Where the value at `path` stands. */
  place(path: DocumentPath): Place;
}

/** One use of a directive whose lines were understood. */
export interface DirectiveUse<S extends Syntax> {
  readonly directive: Directive;
  readonly given: GivenOptions<S>;
}

/** What one use of a directive says, with every default filled in. */
export type GivenOptions<S extends Syntax> = Occurrence<S['args'], S['properties']>;

/** Uses before it is known of which directive. */
export type AnyUse = DirectiveUse<Syntax<Positions, Properties>>;

/** What a Corefile is there for. */
export type CorefileRole = 'server' | 'node-cache';

/** One Corefile, with all that it imports. */
export interface LintedCorefile {
  readonly file: string;
  /** The object that holds it; null: it is a file of its own. */
  readonly object: LintObject | null;
  readonly role: CorefileRole;
  /** A `*.server` or `*.override` that another Corefile imports which is not here: what it lacks may be there. */
  readonly fragment: boolean;
  readonly tree: Corefile;
  readonly blocks: readonly LintedBlock[];
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
  /** Whether the word is an assumed value of a variable (`__PILLAR__…`): rules judge it, but nothing is sent to it. */
  isAssumed(place: Place): boolean;
}

/** One server block. */
export class LintedBlock {
  readonly block: ServerBlock;
  readonly corefile: Pick<LintedCorefile, 'file' | 'fragment' | 'role' | 'object'>;
  /** Absolute, lower case. */
  readonly zones: readonly string[];
  readonly #uses: ReadonlyMap<string, readonly AnyUse[]>;

  constructor(
    block: ServerBlock,
    corefile: Pick<LintedCorefile, 'file' | 'fragment' | 'role' | 'object'>,
    uses: ReadonlyMap<string, readonly AnyUse[]>,
  ) {
    this.block = block;
    this.corefile = corefile;
    this.zones = [...new Set(block.keys.map(({ zone }) => zone))];
    this.#uses = uses;
  }

  /** Whether the directive stands in the block, understood or not. */
  has(name: string): boolean {
    return this.block.directives.some((each) => each.name === name);
  }

  /** All uses of a directive as they stand there. */
  directives(name: string): readonly Directive[] {
    return this.block.directives.filter((each) => each.name === name);
  }

  /** The uses that count, understood: `block.uses<typeof syntax>('cache')`. */
  uses<S extends Syntax>(name: S['name']): readonly DirectiveUse<S>[] {
    return (this.#uses.get(name) ?? []) as unknown as readonly DirectiveUse<S>[];
  }
}

/** What a line inside a directive's braces begins with, last one first: that is the one that counts. */
export function lineOf({ block }: Directive, word: string): Property | null {
  return block?.findLast(({ name }) => name.text === word) ?? null;
}
