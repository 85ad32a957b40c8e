/** The input for rules, consisting of parsed Corefiles, Kubernetes objects, and the target. */
import type { DocumentPath } from '../../server/kube/manifests/yaml-document.ts';
import type { JsonObject } from '../../server/base/json-object.ts';
import type { Place, Problem } from '../../server/base/problem.ts';
import type { Positions } from '../../server/corefile/positions.ts';
import type { Properties } from '../../server/corefile/properties.ts';
import type { Occurrence, Syntax } from '../../server/corefile/syntax.ts';
import type {
  Corefile,
  Directive,
  Property,
  ServerBlock,
} from '../../server/corefile/corefile-tree.ts';
import type { LintTarget } from './target.ts';

/** The whole input of a run. */
export interface Subject {
  readonly corefiles: readonly LintedCorefile[];
  /** Kubernetes objects, kubelet settings, and Helm values (of kind `HelmValues`). */
  readonly objects: readonly LintObject[];
  /** Files in the format of resolv.conf. */
  readonly resolvConfs: readonly { readonly file: string; readonly text: string }[];
  /** The target, or null if no option or image specifies it. */
  readonly target: LintTarget | null;
  /** The running Corefile, if given, for rules about what a change would do. */
  readonly running: LintedCorefile | null;
}

/** A Kubernetes object, or another YAML document that concerns DNS. */
export interface LintObject {
  readonly file: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly value: JsonObject;
  place(path: DocumentPath): Place;
}

/** One use of a directive that could be parsed. */
export interface DirectiveUse<S extends Syntax> {
  readonly directive: Directive;
  readonly given: GivenOptions<S>;
}

/** The options for one use of a directive, with defaults filled in. */
export type GivenOptions<S extends Syntax> = Occurrence<S['args'], S['properties']>;

export type AnyUse = DirectiveUse<Syntax<Positions, Properties>>;

export type CorefileRole = 'server' | 'node-cache';

/** One Corefile with all that it imports. */
export interface LintedCorefile {
  readonly file: string;
  /** The object that contains it, or null if it is a separate file. */
  readonly object: LintObject | null;
  readonly role: CorefileRole;
  /**
   * True for a `*.server` or `*.override` file whose Corefile is not part of the input. Anything that seems to be
   * missing may be there.
   */
  readonly fragment: boolean;
  readonly tree: Corefile;
  readonly blocks: readonly LintedBlock[];
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
  /** True if the word is an assumed value for a variable (`__PILLAR__…`). Rules check it, but nothing is sent to it. */
  isAssumed(place: Place): boolean;
}

export class LintedBlock {
  readonly block: ServerBlock;
  readonly corefile: Pick<LintedCorefile, 'file' | 'fragment' | 'role' | 'object'>;
  /** Absolute and in lower case. */
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

  /** True if the block has the directive, whether or not it could be parsed. */
  has(name: string): boolean {
    return this.block.directives.some((each) => each.name === name);
  }

  /** True if it listens only on loopback, so that no other host can query it. */
  get isLocal(): boolean {
    const { binds } = this;
    return (
      binds.length > 0 && binds.every((text) => /^(?:127\.[\d.]+|::1|lo|localhost)$/.test(text))
    );
  }

  /** The addresses and interfaces that it listens on. Empty for all of the machine's addresses. */
  get binds(): readonly string[] {
    return this.directives('bind').flatMap(({ args }) => args.map(({ text }) => text));
  }

  /** The zones of `kubernetes`, in lower case and without a final dot. By default, these are the block's. */
  get kubernetesZones(): readonly string[] {
    return this.directives('kubernetes')
      .flatMap(({ args }) => (args.length === 0 ? this.zones : args.map(({ text }) => text)))
      .map((zone) => zone.toLowerCase().replace(/(.)\.$/, '$1'));
  }

  /** All uses of a directive as written. */
  directives(name: string): readonly Directive[] {
    return this.block.directives.filter((each) => each.name === name);
  }

  /** The effective uses of a directive, in parsed form: `block.uses<typeof syntax>('cache')`. */
  uses<S extends Syntax>(name: S['name']): readonly DirectiveUse<S>[] {
    return (this.#uses.get(name) ?? []) as unknown as readonly DirectiveUse<S>[];
  }
}

/** The last line inside a directive's braces that starts with `word`. It is the one that takes effect. */
export function lineOf({ block }: Directive, word: string): Property | null {
  return block?.findLast(({ name }) => name.text === word) ?? null;
}
