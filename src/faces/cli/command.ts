/** The interface of commands: their input and output, and their exit codes. */
import type { ColourOptions } from './colour-options.ts';
import type { Usage } from './option.ts';
import { problemsIn } from '../../server/base/problem.ts';
import { tellProblems } from './problem-text.ts';

/** A process's streams, environment and signals, as seen by commands. */
export interface Io {
  out(text: string): void;
  err(text: string): void;
  /**
   * Resolves once standard output has drained, or `until` aborts. Commands with much output use it to wait for slow
   * readers. Absent: no waiting.
   */
  readonly taken?: (until: AbortSignal) => Promise<void>;
  /** Shows the progress of a longer operation on a terminal, in a single line that the next output replaces. */
  progress(text: () => string): void;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** True if standard output is a terminal with colours. */
  readonly colour: boolean;
  /** Terminal width in columns; 100 if there is no terminal. */
  readonly columns: number;
  /** Aborts when the user presses Ctrl-C. The command then has a second to end. */
  readonly signal: AbortSignal;
  /**
   * Reads all of standard input as text. Rejects with a `Problem` above this number of bytes.
   * @param what the expected content, for messages: `Corefile`
   */
  stdin(what: string, mostBytes: number): Promise<string>;
  /** Program name: `ndots`, or `kubectl ndots`. */
  readonly program: string;
}

/** A command. Its `Usage` is separate, because help and completion need only that. */
export interface Command {
  readonly name: string;
  /** @returns the exit code (see EXIT). `failure` prints Problems that it throws. */
  run(words: readonly string[], io: Io): Promise<number>;
}

/** Loads usage and implementation of a command separately. */
export interface Verb {
  usage(): Promise<Usage>;
  command(): Promise<Command>;
}

/**
 * Exit codes of all commands. `serve` and `node-cache` also use 1 for a Corefile that cannot be served, as CoreDNS
 * does.
 */
export const EXIT = {
  ok: 0,
  /** The answer is "no", or there are findings. */
  no: 1,
  /** No result: unreadable input, no network, no cluster. */
  failed: 2,
  /** Invalid command line. */
  usage: 3,
  interrupted: 130,
} as const;

/**
 * Prints a command's problems and returns the exit code: 3 for an invalid command line, otherwise 2. Rethrows other
 * errors, which are bugs.
 */
export function failure(verb: string, error: unknown, io: Io): number {
  const problems = problemsIn(error);
  if (problems === null) throw error;
  tellProblems(verb, problems, io);
  const wrong = problems.some(({ code }) => code === 'usage');
  if (wrong) io.err(`  ${io.program} ${verb} --help shows the options.\n`);
  return wrong ? EXIT.usage : EXIT.failed;
}

/** True if the output is in colour, according to `--color` and `--no-color`. */
export function wantsColour(given: ColourOptions, io: Io): boolean {
  if (given.noColor || given.color === 'never') return false;
  return given.color === 'always' || io.colour;
}
