/** The interface of a lint rule. */
import type { DocumentPath } from '../../server/kube/manifests/yaml-document.ts';
import type { Place } from '../../server/base/problem.ts';
import type {
  Directive,
  Property,
  ServerBlock,
  Token,
} from '../../server/corefile/corefile-tree.ts';
import type { LintSeverity } from './finding.ts';
import type { LintObject, LintedBlock, LintedCorefile, Subject } from './subject.ts';

/** The place of a finding: a word of a Corefile, a line, or the part of an object at a path. */
export type Aim = Token | Directive | Property | ServerBlock | ObjectPath;

/** A part of a Kubernetes object or of Helm values. */
export interface ObjectPath {
  readonly object: LintObject;
  readonly path: DocumentPath;
}

/** A finding in the terms of a rule. */
export interface Told {
  readonly at: Aim | Place;
  /** One sentence without a full stop. */
  readonly text: string;
  readonly hint?: string | null;
  readonly remedy?: string | null;
  /** The severity, if it is not that of the rule. */
  readonly severity?: LintSeverity;
  /** The change that repairs it; several if the finding stands for several places. */
  readonly fix?: Fix | readonly Fix[] | null;
}

/** A safe change of a Corefile, in terms of its words and lines. */
export type Fix =
  /** Replaces a word. */
  | { readonly kind: 'word'; readonly token: Token; readonly text: string }
  /** Adds words after this one, on the same line. */
  | { readonly kind: 'append'; readonly token: Token; readonly text: string }
  /** Inserts a line above that of this word, with the same indentation. */
  | { readonly kind: 'above'; readonly token: Token; readonly text: string }
  /** Adds a line within the directive's braces, which are added if there are none. */
  | { readonly kind: 'property'; readonly directive: Directive; readonly text: string }
  /** Removes the whole line. */
  | { readonly kind: 'remove'; readonly token: Token };

/** Reports a finding. */
export type Tell = (told: Told) => void;

/** One rule. Its page is docs/rules/CODE.md: problem, bad, good, why, when to ignore, since. */
export interface LintRule {
  /** `CF07`. A code is never reused for another rule. */
  readonly code: string;
  /** The usual severity; a finding may have another one. */
  readonly severity: LintSeverity;
  /** The subject of the rule: one line, lower case, no full stop. */
  readonly summary: string;
  /**
   * The kinds of Kubernetes objects that the rule judges one by one, or absent if it judges Corefiles, or objects in
   * relation to others.
   */
  readonly kinds?: readonly string[];
  /** True for a defect of CoreDNS, which counts only if CoreDNS is the target. */
  readonly ofCore?: true;
  /** Examines all of the input. */
  find(subject: Subject, tell: Tell): void;
}

type Head = Pick<LintRule, 'code' | 'severity' | 'summary' | 'ofCore'>;

/** A rule that examines the server blocks one by one, those that could be parsed. */
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

/** A rule that examines the Corefiles one by one. */
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

/** A rule that examines the Kubernetes objects of some kinds one by one. */
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
