/** The interface of verbs: their input and output, and their exit codes. */
import type { ColourOptions } from './colour-options.ts';
import type { Usage } from './option.ts';
import { problemsIn } from '../../server/base/problem.ts';
import { tellProblems } from './problem-text.ts';

/** The streams, the environment and the signals of a process, as verbs use them. */
export interface Io {
  out(text: string): void;
  err(text: string): void;
  /**
   * Resolves once standard output has been read, or `until` aborts: verbs with much output wait
   * for slow readers. Absent: no waiting.
   */
  readonly taken?: (until: AbortSignal) => Promise<void>;
  /**
   * Says on a terminal how far the verb is, if it takes longer than a moment: one line, which the
   * next one takes the place of, and all else that is printed.
   */
  progress(text: () => string): void;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** True if standard output is a terminal with colors. */
  readonly colour: boolean;
  /** Columns of the terminal, 100 if there is none. */
  readonly columns: number;
  /** Aborts when the person asks the verb to end (Ctrl-C): it then has a second to do so. */
  readonly signal: AbortSignal;
  /**
   * All of standard input as text. Rejects with a `Problem` above this number of bytes. @param what
   * the expected content, for messages: `Corefile`
   */
  stdin(what: string, mostBytes: number): Promise<string>;
  /** Name of the program: `ndots`, or `kubectl ndots`. */
  readonly program: string;
}

/** A verb. Its `Usage` is separate, because help and completion load only that. */
export interface Command {
  readonly name: string;
  /** @returns the exit code (see EXIT). Problems that it throws are printed by `failure`. */
  run(words: readonly string[], io: Io): Promise<number>;
}

/** Loads usage and command of a verb separately. */
export interface Verb {
  usage(): Promise<Usage>;
  command(): Promise<Command>;
}

/**
 * One table for all verbs. `serve` and `node-cache` also use 1 for a Corefile that cannot be
 * served, as CoreDNS does.
 */
export const EXIT = {
  ok: 0,
  /** The answer is "no", or there are findings. */
  no: 1,
  /** No result: unreadable input, no network, no cluster. */
  failed: 2,
  /** The command line is wrong. */
  usage: 3,
  interrupted: 130,
} as const;

/**
 * Prints the problems of a verb and returns the exit code: 3 for a wrong command line, else 2.
 * Other errors are bugs and are thrown again.
 */
export function failure(verb: string, error: unknown, io: Io): number {
  const problems = problemsIn(error);
  if (problems === null) throw error;
  tellProblems(verb, problems, io);
  const wrong = problems.some(({ code }) => code === 'usage');
  if (wrong) io.err(`  ${io.program} ${verb} --help shows the options.\n`);
  return wrong ? EXIT.usage : EXIT.failed;
}

/** `--color`, `--no-color`: whether this verb's output is in colour. */
export function wantsColour(given: ColourOptions, io: Io): boolean {
  if (given.noColor || given.color === 'never') return false;
  return given.color === 'always' || io.colour;
}
