/** What a command may touch of the process. */
export interface Io {
  out(text: string): void;
  err(text: string): void;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether standard output is a terminal that wants colour. */
  readonly colour: boolean;
  /** Columns of the terminal, 100 if there is none. */
  readonly columns: number;
  readonly signal: AbortSignal;
  /** Standard input, whole, as text. */
  stdin(): Promise<string>;
}

/** One verb of ndots. */
export interface Command {
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** What `--help` prints: three examples first, one screen. */
  readonly help: string;
  /** Options, for completion: `--client`, `-o` … */
  readonly options: readonly string[];
  /** For completion: the options that take a value, with what may stand there; nothing = a file, or anything. */
  readonly values?: Readonly<Record<string, readonly string[]>>;
  /** For completion: the words that may stand without an option. */
  readonly words?: readonly string[];
  /** @returns the exit code (see EXIT) */
  run(words: readonly string[], io: Io): Promise<number>;
}

/** One table for all verbs. `serve` and `node-cache` also use 1 for a Corefile that cannot be served, as CoreDNS does. */
export const EXIT = {
  /** What was asked for is so. */
  ok: 0,
  /** The answer is "no", or there are findings. */
  no: 1,
  /** It could not be found out (input, network, cluster). */
  failed: 2,
  /** The command line is wrong. */
  usage: 3,
  interrupted: 130,
} as const;
