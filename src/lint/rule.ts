/** What a rule of the linter is. */
import type { DocumentPath } from '../kube/manifests/yaml-document.ts';
import type { Place } from '../base/problem.ts';
import type { Directive, Property, ServerBlock, Token } from '../corefile/tree.ts';
import type { LintSeverity } from './finding.ts';
import type { LintObject, LintedBlock, LintedCorefile, Subject } from './subject.ts';

/** Where a rule points: a word of a Corefile, a line, or the part of an object at a path. */
export type Aim = Token | Directive | Property | ServerBlock | ObjectPath;

/** A part of a Kubernetes object or of Helm values. */
export interface ObjectPath {
  readonly object: LintObject;
  readonly path: DocumentPath;
}

/** One thing that a rule found. */
export interface Told {
  readonly at: Aim | Place;
  /** One sentence, no full stop. */
  readonly text: string;
  readonly hint?: string | null;
  readonly remedy?: string | null;
  /** Other than the rule's own. */
  readonly severity?: LintSeverity;
  /** Several: a finding that stands for more places. */
  readonly fix?: Fix | readonly Fix[] | null;
}

/** A change of a Corefile that needs no thinking, in terms of its words and lines. */
export type Fix =
  /** Another word in the place of this one. */
  | { readonly kind: 'word'; readonly token: Token; readonly text: string }
  /** More words behind this one. */
  | { readonly kind: 'append'; readonly token: Token; readonly text: string }
  /** A line of its own above the line of this word, indented as it is. */
  | { readonly kind: 'above'; readonly token: Token; readonly text: string }
  /** A line inside the braces of the directive, which gets some if it has none. */
  | { readonly kind: 'property'; readonly directive: Directive; readonly text: string }
  /** The whole line goes. */
  | { readonly kind: 'remove'; readonly token: Token };

/** Tells of a finding. */
export type Tell = (told: Told) => void;

/** One rule. Its page is docs/rules/CODE.md: problem, bad, good, why, when to ignore, since. */
export interface LintRule {
  /** `CF07`: never used again for something else. */
  readonly code: string;
  /** Its usual severity; a finding may have another one. */
  readonly severity: LintSeverity;
  /** One line, lower case, no full stop: what is flagged. */
  readonly summary: string;
  /** Kinds of Kubernetes objects that it judges each for itself; absent: it judges Corefiles, or objects beside others. */
  readonly kinds?: readonly string[];
  /** Looks at everything that was read. */
  find(subject: Subject, tell: Tell): void;
}

type Head = Pick<LintRule, 'code' | 'severity' | 'summary'>;

/** A rule that looks at one server block at a time, and at those that were understood. */
export function blockRule(
  head: Head & { find(block: LintedBlock, tell: Tell, subject: Subject): void },
): LintRule {
  return {
    ...head,
    find(subject, tell) {
      for (const corefile of subject.corefiles)
        for (const block of corefile.blocks) head.find(block, tell, subject);
    },
  };
}

/** A rule that looks at one Corefile at a time. */
export function corefileRule(
  head: Head & { find(corefile: LintedCorefile, tell: Tell, subject: Subject): void },
): LintRule {
  return {
    ...head,
    find(subject, tell) {
      for (const corefile of subject.corefiles) head.find(corefile, tell, subject);
    },
  };
}

/** A rule that looks at Kubernetes objects of some kinds, one at a time. */
export function objectRule(
  head: Head & {
    readonly kinds: readonly string[];
    find(object: LintObject, tell: Tell, subject: Subject): void;
  },
): LintRule {
  return {
    ...head,
    find(subject, tell) {
      for (const object of subject.objects)
        if (head.kinds.includes(object.kind)) head.find(object, tell, subject);
    },
  };
}
