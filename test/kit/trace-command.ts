/** Runs `ndots trace` in this process, as the command line would, and returns the output. */
import { failure, type Command, type Io } from '../../src/faces/cli/command.ts';
import { trace } from '../../src/faces/cli/trace/trace.ts';
import { harmless } from '../../src/faces/cli/terminal.ts';
import type { TraceDocument } from '../../src/tools/resolver/trace-document.ts';

/** A command's exit code and output. */
export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Terminal settings. If omitted, standard output is not a terminal. */
export interface Terminal {
  readonly colour?: boolean;
  readonly columns?: number;
  /** Receives the command's progress. */
  readonly progress?: (text: string) => void;
  /** Ctrl-C. If omitted, it is never pressed. */
  readonly signal?: AbortSignal;
}

export function runTrace(
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
  terminal: Terminal = {},
): Promise<Ran> {
  return runCommand(trace, words, env, terminal);
}

export async function runCommand(
  command: Command,
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
  {
    colour = false,
    columns = 100,
    progress = () => undefined,
    signal = new AbortController().signal,
  }: Terminal = {},
  stdin = '',
): Promise<Ran> {
  let out = '';
  let err = '';
  const io: Io = {
    out: (text) => void (out += harmless(text)),
    err: (text) => void (err += harmless(text)),
    progress: (text) => progress(text()),
    env,
    colour,
    columns,
    signal,
    stdin: () => Promise.resolve(stdin),
    program: 'ndots',
  };
  const code = await command
    .run(words, io)
    .catch((error: unknown) => failure(command.name, error, io));
  return { code, out, err };
}

export async function traceJson(
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<TraceDocument> {
  const { out, err } = await runTrace([...words, '-o', 'json'], env);
  if (out === '') throw new Error(err);
  return JSON.parse(out) as TraceDocument;
}

export function storyFile(name: string): string {
  return new URL(`../stories/trace-data/${name}`, import.meta.url).pathname;
}
