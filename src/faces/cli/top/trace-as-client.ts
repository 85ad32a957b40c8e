/** Repeats a lookup as one of the observed clients would, with its resolver and search path. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Kind } from '../../../tools/capture/fingerprint/asking-classes.ts';
import type { ViewName } from '../../../tools/watch/view.ts';
import { failure, type Io } from '../command.ts';
import { nameWords } from './equivalent-command.ts';
import type { TopOptions } from './top-options.ts';
import type { AskModel, TraceTarget } from './pages/top-page.ts';

const modelled: ReadonlySet<Kind> = new Set(['glibc', 'musl', 'go', 'c-ares', 'evdns']);

export interface TracePlan {
  readonly words: readonly string[];
  readonly notes: readonly string[];
}

/**
 * Builds a command line that sends the same queries as the client.
 * @param writeConf writes a resolv.conf and returns its path
 */
export function planTrace(
  target: TraceTarget,
  ask: AskModel,
  options: TopOptions,
  writeConf: (text: string) => string,
): TracePlan {
  const { client, clientId, server, name } = target;
  const notes: string[] = [];
  const [row] = ask({ view: 'clients' satisfies ViewName, id: clientId, most: 1 }).rows;
  const kind = row?.resolver.kinds.find((each) => modelled.has(each));
  if (kind === undefined) notes.push('This client’s resolver is unknown, so glibc is assumed.');
  const words = ['trace', name, '-c', kind ?? 'glibc'];
  // A server from a capture may not be reachable from here.
  if (options.files.length > 0) words.push('--plan');
  const isNamed = options.cluster || options.manifests !== null;
  if (isNamed && client.kind === 'pod' && !client.isGone) {
    const [namespace = '', pod = ''] = client.name.split('/');
    words.push('--from', `pod/${pod}`, '-n', namespace);
    words.push(...nameWords(options).filter((word) => word !== '--cluster'));
    return { words, notes };
  }
  const process = /^\/proc\/\d+\/ns\/net$/.test(options.netns ?? '');
  if (process) {
    words.push('--resolv-conf', options.netns!.replace(/ns\/net$/, 'root/etc/resolv.conf'));
    return { words, notes };
  }
  const search = searchPath(target);
  notes.push(
    'The search path was inferred from this lookup’s queries. Its file is removed when top ends.',
  );
  words.push(
    '--resolv-conf',
    writeConf(
      `${server === '' ? '' : `nameserver ${server}\n`}${search.length === 0 ? '' : `search ${search.join(' ')}\n`}options ndots:${search.length === 0 ? 1 : 5}\n`,
    ),
  );
  return { words, notes };
}

function searchPath({ name, candidates }: TraceTarget): readonly string[] {
  const stem = name.endsWith('.') ? name : `${name}.`;
  return candidates
    .filter((each) => each.length > stem.length && each.startsWith(stem))
    .map((each) => each.slice(stem.length).replace(/\.$/, ''));
}

/** The files of traces, in a temporary directory. Commands that are shown may name them until they are removed. */
export class TraceFiles {
  #directory: string | null = null;
  #written = 0;

  /** @returns the path */
  write(text: string): string {
    this.#directory ??= mkdtempSync(join(tmpdir(), 'ndots-top-'));
    const path = join(this.#directory, `resolv-${++this.#written}.conf`);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  }

  remove(): void {
    if (this.#directory !== null) rmSync(this.#directory, { recursive: true, force: true });
    this.#directory = null;
  }
}

/** @returns its output */
export async function runTraceWords(
  words: readonly string[],
  io: Io,
  columns: number,
  signal: AbortSignal,
): Promise<string> {
  const { trace } = await import('../trace/trace.ts');
  let text = '';
  const captured: Io = {
    ...io,
    out: (more) => void (text += more),
    err: (more) => void (text += more),
    progress: () => undefined,
    colour: false,
    columns,
    signal,
    env: io.env,
    program: io.program,
    stdin: () => Promise.resolve(''),
  };
  try {
    await trace.run(words.slice(1), captured);
  } catch (error) {
    failure('trace', error, captured);
  }
  return text;
}
