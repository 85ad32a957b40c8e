/** The linter's findings, and the edits that fix them. */
import { Problem, type Place } from '../../server/base/problem.ts';

/**
 * The severity. An `error` breaks resolution or will, a `warning` breaks it under load or after the next change, and a
 * `note` is worth knowing.
 */
export type LintSeverity = 'error' | 'warning' | 'note';

/** All severities, worst first. */
export const severities: readonly LintSeverity[] = ['error', 'warning', 'note'];

export function atLeast(severity: LintSeverity, least: LintSeverity): boolean {
  return severities.indexOf(severity) <= severities.indexOf(least);
}

/** Part of a line in the file that a person edits. Lines and columns count from 1, and `endColumn` is exclusive. */
export interface Spot extends Place {
  readonly endColumn: number;
}

/** A replacement for the text from `line`:`column` up to, but not including, `endLine`:`endColumn`. */
export interface Edit {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly endLine: number;
  readonly endColumn: number;
  readonly text: string;
}

/** A finding, with everything that a report prints about it. */
export interface LintFinding {
  /** `CF07`. Codes are never reused for another rule. */
  readonly code: string;
  readonly severity: LintSeverity;
  /** One sentence that states the fact. */
  readonly text: string;
  readonly spot: Spot;
  /**
   * The part of the file that contains the Corefile, for example `data["Corefile"]`. Null if the whole file is the
   * Corefile, or there is none.
   */
  readonly within: string | null;
  /**
   * The line to show as an excerpt, or null if there is none. For quoted YAML text, it is a line of the parsed text.
   */
  readonly excerpt: string | null;
  /** The column in the excerpt where the finding begins. */
  readonly caret: number;
  /** The reason, or a suggestion. */
  readonly hint: string | null;
  readonly remedy: string | null;
  /** The edits that `--fix` makes. Empty if a person has to decide. */
  readonly edits: readonly Edit[];
}

/** A problem that prevents linting, such as a path that cannot be read or a code that does not exist. */
export function cannotLint(
  code: 'lint-unreadable' | 'lint-nothing',
  text: string,
  advice: { readonly hint?: string; readonly remedy?: string; readonly cause?: unknown } = {},
): Problem {
  return code === 'lint-unreadable'
    ? new Problem({ code: 'lint-unreadable', text, ...advice })
    : new Problem({ code: 'lint-nothing', text, ...advice });
}
