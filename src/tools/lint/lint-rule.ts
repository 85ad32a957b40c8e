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

/** The place of a finding, which is a word in a Corefile, a line, or the part of an object at a path. */
export type Aim = Token | Directive | Property | ServerBlock | ObjectPath;

/** Part of a Kubernetes object or of Helm values. */
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
  /** The severity, if it differs from the rule's own. */
  readonly severity?: LintSeverity;
  /** The change that fixes it, or several if the finding covers several places. */
  readonly fix?: Fix | readonly Fix[] | null;
}

/** A safe change to a Corefile, expressed in its words and lines. */
export type Fix =
  /** Replaces a word. */
  | { readonly kind: 'word'; readonly token: Token; readonly text: string }
  /** Adds words after this one on the same line. */
  | { readonly kind: 'append'; readonly token: Token; readonly text: string }
  /** Inserts a line above this word's line, with the same indentation. */
  | { readonly kind: 'above'; readonly token: Token; readonly text: string }
  /** Adds a line inside the directive's braces, which are added if there are none. */
  | { readonly kind: 'property'; readonly directive: Directive; readonly text: string }
  /** Removes the whole line. */
  | { readonly kind: 'remove'; readonly token: Token };

/** Reports a finding. */
export type Tell = (told: Told) => void;

/**
 * A rule. Its page is docs/rules/CODE.md, with the problem, bad and good examples, why it matters, when to ignore it,
 * and since when it exists.
 */
export interface LintRule {
  /** `CF07`. Codes are never reused for another rule. */
  readonly code: string;
  /** The usual severity, which a finding may override. */
  readonly severity: LintSeverity;
  /** The rule's subject in one line, in lower case and without a full stop. */
  readonly summary: string;
  /**
   * The kinds of Kubernetes objects that the rule examines one by one. Absent if it examines Corefiles, or objects in
   * relation to others.
   */
  readonly kinds?: readonly string[];
  /** True for a defect in CoreDNS, which only counts if CoreDNS is the target. */
  readonly ofCore?: true;
  /** Examines all of the input. */
  find(subject: Subject, tell: Tell): void;
}

type Head = Pick<LintRule, 'code' | 'severity' | 'summary' | 'ofCore'>;

/** A rule that examines server blocks one by one, if they could be parsed. */
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

/** A rule that examines certain kinds of Kubernetes objects one by one. */
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
