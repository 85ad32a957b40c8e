/** Runs `ndots trace` in this process, as the command line would, and gives back what it printed. */
import type { Io } from '../../src/cli/command.ts';
import { trace } from '../../src/cli/trace.ts';
import type { TraceDocument } from '../../src/resolver/report.ts';

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export async function runTrace(
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ran> {
  let out = '';
  let err = '';
  const io: Io = {
    out: (text) => void (out += text),
    err: (text) => void (err += text),
    env,
    colour: false,
    columns: 100,
    signal: new AbortController().signal,
    stdin: () => Promise.resolve(''),
  };
  const code = await trace.run(words, io);
  return { code, out, err };
}

/** The JSON document of one trace. */
export async function traceJson(
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<TraceDocument> {
  const { out, err } = await runTrace([...words, '-o', 'json'], env);
  if (out === '') throw new Error(err);
  return JSON.parse(out) as TraceDocument;
}

/** Where the files of the stories lie. */
export function storyFile(name: string): string {
  return new URL(`../stories/trace-data/${name}`, import.meta.url).pathname;
}
