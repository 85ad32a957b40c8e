/** The interface that commands implement, with their input, output and exit codes. */
import type { ColourOptions } from './colour-options.ts';
import type { Usage } from './option.ts';
import { problemsIn } from '../../server/base/problem.ts';
import { tellProblems } from './problem-text.ts';

/** The process's streams, environment and signals, as commands see them. */
export interface Io {
  out(text: string): void;
  err(text: string): void;
  /**
   * Resolves once standard output has drained or `until` aborts, so that commands with a lot of output can wait for
   * slow readers. If absent, there is no waiting.
   */
  readonly taken?: (until: AbortSignal) => Promise<void>;
  /** Shows the progress of a longer operation on a single terminal line, which the next output replaces. */
  progress(text: () => string): void;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** True if standard output is a terminal that supports colours. */
  readonly colour: boolean;
  /** Terminal width in columns, or 100 if there is no terminal. */
  readonly columns: number;
  /** Aborts when the user presses Ctrl-C, after which the command has a second to end. */
  readonly signal: AbortSignal;
  /**
   * Reads all of standard input as text. Rejects with a `Problem` if it exceeds this number of bytes.
   * @param what is expected, for messages: `Corefile`
   */
  stdin(what: string, mostBytes: number): Promise<string>;
  /** Program name: `ndots`, or `kubectl ndots`. */
  readonly program: string;
}

/** A command. Its `Usage` is kept separate, because help and completion need nothing else. */
export interface Command {
  readonly name: string;
  /** @returns the exit code (see EXIT). Any Problem it throws is printed by `failure`. */
  run(words: readonly string[], io: Io): Promise<number>;
}

/** Loads usage and implementation of a command separately. */
export interface Verb {
  usage(): Promise<Usage>;
  command(): Promise<Command>;
}

/**
 * Exit codes for all commands. As in CoreDNS, `serve` and `node-cache` also use 1 for a Corefile that cannot be served.
 */
export const EXIT = {
  ok: 0,
  /** The answer is "no", or there are findings. */
  no: 1,
  /** No result: unreadable input, no network, no cluster. */
  failed: 2,
  usage: 3,
  interrupted: 130,
} as const;

/**
 * Prints a command's problems and returns the exit code, which is 3 for an invalid command line and otherwise 2.
 * Rethrows other errors, which are bugs.
 */
export function failure(verb: string, error: unknown, io: Io): number {
  const problems = problemsIn(error);
  if (problems === null) throw error;
  tellProblems(verb, problems, io);
  const wrong = problems.some(({ code }) => code === 'usage');
  if (wrong) io.err(`  ${io.program} ${verb} --help shows the options.\n`);
  return wrong ? EXIT.usage : EXIT.failed;
}

/** True if `--color`, `--no-color` or the terminal calls for coloured output. */
export function wantsColour(given: ColourOptions, io: Io): boolean {
  if (given.noColor || given.color === 'never') return false;
  return given.color === 'always' || io.colour;
}
