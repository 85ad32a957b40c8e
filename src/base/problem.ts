import { shortened } from './shortened.ts';
import { visible } from './visible.ts';

/** Where in a file a person has to look. Lines and columns count from 1; column 0 = the whole line. */
export interface Place {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** What a problem is made of. */
export interface ProblemParts {
  /** Stable and lower case with dashes, e.g. `unknown-directive`; names its entry in docs/problems.md. */
  readonly code: string;
  /** What happened. Where CoreDNS has a wording, this is it. */
  readonly text: string;
  readonly place?: Place | undefined;
  /** Most likely why, or what was probably meant. */
  readonly hint?: string | undefined;
  /** What to do or run next. */
  readonly remedy?: string | undefined;
  readonly cause?: unknown;
}

/** A person's mistake (Corefile, flags, manifests, machine set-up): never a bug, never the network's failure. */
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

  /** What it is made of, as plain data: crosses threads. */
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

  /** The same problem with some parts changed. */
  with(change: Partial<ProblemParts>): Problem {
    return new Problem({ ...this.parts, cause: this.cause, ...change });
  }

  /** The whole message for a terminal: what, where, why, what next; one fact a line. */
  print(): string {
    const lines = [this.message];
    if (this.place !== null && !this.message.includes(`${this.place.file}:${this.place.line}`)) {
      lines.push(`  at ${printPlace(this.place)}`);
    }
    if (this.hint !== null) lines.push(`  ${this.hint}`);
    if (this.remedy !== null) lines.push(`  ${this.remedy}`);
    return visible(shortened(lines.join('\n')));
  }
}

/** Several problems at once; the message is the first one's. */
export class Problems extends Error {
  readonly problems: readonly Problem[];
  /** What was only odd: often the cause (a variable that is not set). */
  readonly warnings: readonly Problem[];

  constructor(problems: readonly Problem[], warnings: readonly Problem[] = []) {
    super(problems[0]?.message ?? 'no problem');
    this.name = 'Problems';
    this.problems = problems;
    this.warnings = warnings;
  }
}

/** The problems in anything thrown; null if it is something else, a bug. */
export function problemsIn(error: unknown): readonly Problem[] | null {
  if (error instanceof Problems) return error.problems;
  return error instanceof Problem ? [error] : null;
}

/** Collects the problems of parts that are done one after the other, so that all are told at once. */
export class Mistakes {
  readonly problems: Problem[] = [];

  /** What `run` gives; null if it throws problems, which are remembered. */
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

  /** @throws the problem if there is one, Problems if there are several */
  throw(): void {
    const [first] = this.problems;
    if (first !== undefined) throw this.problems.length === 1 ? first : new Problems(this.problems);
  }
}

/** `Corefile:3:5`, or `Corefile:3` for a whole line. */
export function printPlace(place: Place): string {
  return place.column > 0
    ? `${place.file}:${place.line}:${place.column}`
    : `${place.file}:${place.line}`;
}

/** The word of `known` that was probably meant by `word`: at most two edits away, or null. */
export function nearest(word: string, known: Iterable<string>): string | null {
  let best: string | null = null;
  let bestDistance = Math.min(3, Math.max(2, Math.ceil(word.length / 2)));
  for (const candidate of known) {
    // No fewer edits than letters that are missing: of a megabyte nothing has to be counted.
    if (Math.abs(word.length - candidate.length) >= bestDistance) continue;
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Edits (insert, delete, replace, swap of neighbours) that lead from one word to the other. */
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
