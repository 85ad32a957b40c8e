/** What the linter says: findings, and the changes that mend them. */
import { Problem, type Place } from '../base/problem.ts';

/**
 * How bad it is: `error` breaks resolution or will, `warning` breaks under load or with the next change, `note` is worth
 * knowing.
 */
export type LintSeverity = 'error' | 'warning' | 'note';

/** From the worst down. */
export const severities: readonly LintSeverity[] = ['error', 'warning', 'note'];

/** Whether the first is as bad as the second, or worse. */
export function atLeast(severity: LintSeverity, least: LintSeverity): boolean {
  return severities.indexOf(severity) <= severities.indexOf(least);
}

/** A part of one line, in the file that a person edits. Lines and columns count from 1; `endColumn` is behind the last one. */
export interface Spot extends Place {
  readonly endColumn: number;
}

/** Text of a file that another takes the place of: from `line`:`column` up to `endLine`:`endColumn`, which stays. */
export interface Edit {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly endLine: number;
  readonly endColumn: number;
  readonly text: string;
}

/** One thing that is wrong, with all that a report says of it. */
export interface LintFinding {
  /** `CF07`: never used again for something else. */
  readonly code: string;
  readonly severity: LintSeverity;
  /** One sentence: what is so. */
  readonly text: string;
  readonly spot: Spot;
  /** The part of the file that holds the Corefile, as `data["Corefile"]`; null: the file is the Corefile, or holds none. */
  readonly within: string | null;
  /** The line, for an excerpt; null: there is none to show. Of a text in quotes it is a line of that text. */
  readonly excerpt: string | null;
  /** The column of the excerpt that the spot begins in. */
  readonly caret: number;
  /** Why it matters here, or what was probably meant. */
  readonly hint: string | null;
  /** What to do. */
  readonly remedy: string | null;
  /** What `--fix` does; empty: that is for a person to decide. */
  readonly edits: readonly Edit[];
}

/** Something that keeps the linter from its work: a path that cannot be read, a code that does not exist. */
export function cannotLint(
  code: 'lint-unreadable' | 'lint-nothing',
  text: string,
  advice: { readonly hint?: string; readonly remedy?: string; readonly cause?: unknown } = {},
): Problem {
  return code === 'lint-unreadable'
    ? new Problem({ code: 'lint-unreadable', text, ...advice })
    : new Problem({ code: 'lint-nothing', text, ...advice });
}
