/** Findings of the linter, and the edits that fix them. */
import { Problem, type Place } from '../../server/base/problem.ts';

/**
 * The severity: an `error` breaks resolution or will, a `warning` breaks it under load or with the
 * next change, a `note` is worth knowing.
 */
export type LintSeverity = 'error' | 'warning' | 'note';

/** All severities, worst first. */
export const severities: readonly LintSeverity[] = ['error', 'warning', 'note'];

/** True if `severity` is `least` or worse. */
export function atLeast(severity: LintSeverity, least: LintSeverity): boolean {
  return severities.indexOf(severity) <= severities.indexOf(least);
}

/**
 * A part of one line in the file that a person edits. Lines and columns count from 1; `endColumn`
 * is exclusive.
 */
export interface Spot extends Place {
  readonly endColumn: number;
}

/** A replacement for the text from `line`:`column` up to `endLine`:`endColumn`, exclusive. */
export interface Edit {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly endLine: number;
  readonly endColumn: number;
  readonly text: string;
}

/** One finding, with all that a report prints about it. */
export interface LintFinding {
  /** `CF07`. A code is never reused for another rule. */
  readonly code: string;
  readonly severity: LintSeverity;
  /** One sentence that states the fact. */
  readonly text: string;
  readonly spot: Spot;
  /**
   * The part of the file that holds the Corefile, e.g. `data["Corefile"]`, or null if the whole file is the Corefile,
   * or there is none.
   */
  readonly within: string | null;
  /**
   * The line to show as an excerpt, or null if there is none. For a quoted YAML text it is a line of the parsed text.
   */
  readonly excerpt: string | null;
  /** The column in the excerpt at which the spot begins. */
  readonly caret: number;
  /** The reason, or a suggestion. */
  readonly hint: string | null;
  readonly remedy: string | null;
  /** The edits that `--fix` makes; empty if a person has to decide. */
  readonly edits: readonly Edit[];
}

/** The problem that prevents linting: a path that cannot be read, a code that does not exist. */
export function cannotLint(
  code: 'lint-unreadable' | 'lint-nothing',
  text: string,
  advice: { readonly hint?: string; readonly remedy?: string; readonly cause?: unknown } = {},
): Problem {
  return code === 'lint-unreadable'
    ? new Problem({ code: 'lint-unreadable', text, ...advice })
    : new Problem({ code: 'lint-nothing', text, ...advice });
}
