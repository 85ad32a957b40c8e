import { shortened } from './shortened.ts';
import { oneLine, visible } from './visible.ts';

/** A position in a file. Lines and columns are counted from 1, and column 0 means the whole line. */
export interface Place {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

export interface ProblemParts {
  /**
   * A stable identifier in lower case with dashes, e.g. `unknown-directive`. There is an entry for each in
   * docs/problems.md.
   */
  readonly code: string;
  /** The error message, in CoreDNS's words where CoreDNS has one. */
  readonly text: string;
  readonly place?: Place | undefined;
  /** The most likely cause, or a suggestion. */
  readonly hint?: string | undefined;
  /** The next action or command. */
  readonly remedy?: string | undefined;
  readonly cause?: unknown;
}

/** A user error in a Corefile, flags, manifests or the machine's setup. Never a bug or a network failure. */
export class Problem extends Error {
  readonly code: string;
  readonly place: Place | null;
  readonly hint: string | null;
  readonly remedy: string | null;

  constructor(parts: ProblemParts) {
    super(parts.text, parts.cause === undefined ? undefined : { cause: parts.cause });
    this.name = 'Problem';
    this.code = parts.code;
    this.place = parts.place ?? null;
    this.hint = parts.hint ?? null;
    this.remedy = parts.remedy ?? null;
  }

  /** The fields as plain data that can be sent to another thread. */
  get parts(): ProblemParts {
    const { code, message: text, place, hint, remedy } = this;
    return {
      code,
      text,
      place: place ?? undefined,
      hint: hint ?? undefined,
      remedy: remedy ?? undefined,
    };
  }

  /** Returns the same problem with some fields changed. */
  with(change: Partial<ProblemParts>): Problem {
    return new Problem({ ...this.parts, cause: this.cause, ...change });
  }

  /** Formats the whole message for terminal output: what, where, why and what to do next, one line each. */
  print(): string {
    // Quoted text may contain line breaks.
    const lines = [oneLine(this.message)];
    if (this.place !== null && !this.message.includes(`${this.place.file}:${this.place.line}`)) {
      lines.push(`  at ${printPlace(this.place)}`);
    }
    if (this.hint !== null) lines.push(`  ${this.hint}`);
    if (this.remedy !== null) lines.push(`  ${this.remedy}`);
    return visible(shortened(lines.join('\n')));
  }
}

/** Several problems at once. The message is that of the first one. */
export class Problems extends Error {
  readonly problems: readonly Problem[];
  /** Accompanying warnings. Often, one of them is the cause, such as an unset variable. */
  readonly warnings: readonly Problem[];

  constructor(problems: readonly Problem[], warnings: readonly Problem[] = []) {
    super(problems[0]?.message ?? 'no problem');
    this.name = 'Problems';
    this.problems = problems;
    this.warnings = warnings;
  }
}

/** Returns the problems in a thrown value, or null if the value is something else, in other words a bug. */
export function problemsIn(error: unknown): readonly Problem[] | null {
  if (error instanceof Problems) return error.problems;
  return error instanceof Problem ? [error] : null;
}

/** Collects problems from consecutive steps, so that all of them are reported at once. */
export class Mistakes {
  readonly problems: Problem[] = [];

  /** Returns the result of `run`. If it throws problems, collects them and returns null. */
  async of<T>(run: () => T | Promise<T>): Promise<T | null> {
    try {
      return await run();
    } catch (error) {
      const found = problemsIn(error);
      if (found === null) throw error;
      this.problems.push(...found);
      return null;
    }
  }

  /** @throws the problem if there is just one, `Problems` if there are several */
  throw(): void {
    const [first] = this.problems;
    if (first !== undefined) throw this.problems.length === 1 ? first : new Problems(this.problems);
  }
}

/** Prints a position as `Corefile:3:5`, or as `Corefile:3` for a whole line. */
export function printPlace(place: Place): string {
  return place.column > 0
    ? `${place.file}:${place.line}:${place.column}`
    : `${place.file}:${place.line}`;
}

/** Minimum length of a prefix. Shorter prefixes match too many words. */
const BEGINNING = 3;

/**
 * Returns the word in `known` that `word` was probably meant to be. This is a word one edit away, else the only one
 * with that prefix, else a word two edits away. Returns null if there is none.
 */
export function nearest(word: string, known: Iterable<string>): string | null {
  let best: string | null = null;
  let bestDistance = Math.min(3, Math.max(2, Math.ceil(word.length / 2)));
  const longer = new Set<string>();
  for (const candidate of known) {
    if (word.length >= BEGINNING && candidate.startsWith(word)) longer.add(candidate);
    // The difference in length is a lower bound on the distance, so very long words are rejected cheaply.
    if (Math.abs(word.length - candidate.length) >= bestDistance) continue;
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  const [only = null] = longer.size === 1 ? longer : [];
  return bestDistance === 1 ? best : (only ?? best);
}

/** The hint for an unknown word: the known one that was probably meant, or else `otherwise`. */
export function didYouMean(word: string, known: Iterable<string>): string | undefined;
export function didYouMean(word: string, known: Iterable<string>, otherwise: string): string;
export function didYouMean(
  word: string,
  known: Iterable<string>,
  otherwise?: string,
): string | undefined {
  const meant = nearest(word, known);
  return meant === null ? otherwise : `Did you mean ${meant}?`;
}

/** Counts the edits (insert, delete, replace, or swap neighbours) that separate two words. */
function editDistance(from: string, to: string): number {
  const rows: number[][] = [Array.from({ length: to.length + 1 }, (_, column) => column)];
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const change = from[i - 1] === to[j - 1] ? 0 : 1;
      let cost = Math.min(rows[i - 1]![j]! + 1, row[j - 1]! + 1, rows[i - 1]![j - 1]! + change);
      if (i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]) {
        cost = Math.min(cost, rows[i - 2]![j - 2]! + 1);
      }
      row.push(cost);
    }
    rows.push(row);
  }
  return rows[from.length]![to.length]!;
}
