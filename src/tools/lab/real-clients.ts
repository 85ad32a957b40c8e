/**
 * Real clients, which are small programs that look up a name as applications do, one for each resolver. They are
 * compiled on this machine once and stored in the user's cache directory. If a compiler or library is missing, this is
 * reported and the client's model is used instead.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findProgram, runProgram, type ProgramResult } from '../../server/runtime/programs.ts';
import type { Environment } from '../../server/base/environment.ts';

/**
 * A client that this machine can run, or the reason why it cannot. Its command line ends in `NAME FAMILY(0|4|6) COUNT`.
 */
export type RealClient =
  | { readonly words: readonly string[]; readonly missing: null }
  | { readonly words: null; readonly missing: string };

/** A real client's output for each lookup. */
export interface ClientReport {
  /** `''`: no error. */
  readonly err: string;
  readonly ms: number;
  readonly addrs: readonly string[];
}

const SOURCES = new URL('./clients/', import.meta.url);

interface Recipe {
  readonly needs: string;
  /** The library to name if compilation fails. */
  readonly library: string;
  /** Relative to `SOURCES`: a file or a directory. */
  readonly source: string;
  compile(source: string, to: string): readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const recipes: Readonly<Record<string, Recipe>> = {
  glibc: {
    needs: 'gcc',
    library: 'libc6-dev',
    source: 'lookup.c',
    compile: (source, to) => ['gcc', '-O1', '-o', to, source],
  },
  musl: {
    needs: 'musl-gcc',
    library: 'musl-tools',
    source: 'lookup.c',
    compile: (source, to) => ['musl-gcc', '-O1', '-static', '-o', to, source],
  },
  go: {
    needs: 'go',
    library: 'Go',
    source: 'go',
    compile: (source, to) => ['go', 'build', '-C', source, '-o', to, '.'],
    // The client must send EDNS like current programs, which depends on GODEBUG and the module's go line.
    env: { CGO_ENABLED: '0', GOTOOLCHAIN: 'local', GOFLAGS: '-buildvcs=false', GODEBUG: '' },
  },
  evdns: {
    needs: 'gcc',
    library: 'libevent-dev',
    source: 'evdns.c',
    compile: (source, to) => ['gcc', '-O1', '-o', to, source, '-levent'],
  },
};

/** In milliseconds. A compiler that takes longer is considered hung. */
const COMPILE_MS = 180_000;
const made = new Map<string, Promise<RealClient>>();

/** Returns a resolver's client, which is compiled on first use and then cached. */
export function realClient(name: string, env: Environment): Promise<RealClient> {
  const known = made.get(name);
  if (known !== undefined) return known;
  const making = make(name, env);
  made.set(name, making);
  return making;
}

async function make(name: string, env: Environment): Promise<RealClient> {
  const recipe = recipes[name];
  if (recipe === undefined) return { words: null, missing: `there is no program for ${name}` };
  const source = fileURLToPath(new URL(recipe.source, SOURCES));
  if (!existsSync(source)) return { words: null, missing: `its source is missing: ${source}` };
  const directory = cacheDirectory(env);
  const program = join(directory, `${name}-${digest(source)}`);
  if (existsSync(program)) return { words: [program], missing: null };
  if (findProgram(recipe.needs, env['PATH'] ?? '') === null)
    return { words: null, missing: `needs ${recipe.needs} (${recipe.library})` };
  const partial = `${program}.${process.pid}`;
  const result = await compile(recipe, source, partial, {
    ...env,
    GOCACHE: join(directory, 'go-build'),
  });
  if (result.code !== 0) {
    rmSync(partial, { force: true });
    const [said = 'it took too long'] = result.stderr.split('\n').filter(Boolean);
    const [, reason = said] = /error: (.*)/.exec(said) ?? [];
    return {
      words: null,
      missing: `does not compile: ${reason}; ${recipe.library} may be missing`,
    };
  }
  // Another lab may be compiling it at the same time, in which case the last one replaces the program with an identical
  // one.
  renameSync(partial, program);
  return { words: [program], missing: null };
}

async function compile(
  recipe: Recipe,
  source: string,
  to: string,
  env: Environment,
): Promise<ProgramResult> {
  try {
    mkdirSync(dirname(to), { recursive: true });
    const settings = { env: { ...env, ...recipe.env }, limitMs: COMPILE_MS };
    return await runProgram(recipe.compile(source, to), settings);
  } catch (error) {
    return { code: 1, stdout: '', stderr: (error as Error).message, tookMs: 0 };
  }
}

/** The user's cache directory (XDG Base Directory Specification). */
function cacheDirectory({ XDG_CACHE_HOME: cache, HOME: home }: Environment): string {
  const base = cache || (home ? join(home, '.cache') : tmpdir());
  return join(base, 'ndots', 'lab-clients');
}

/** Hashes a source file or all files in a directory. */
function digest(source: string): string {
  const hash = createHash('sha256');
  const files = source.endsWith('.c') ? [source] : readdirSync(source).map((n) => join(source, n));
  for (const file of files.toSorted((a, b) => a.localeCompare(b))) hash.update(readFileSync(file));
  return hash.digest('hex').slice(0, 12);
}

/** Parses a client's output, in which the last lookup counts. Returns null if there is no output. */
export function readReport({ stdout }: Pick<ProgramResult, 'stdout'>): ClientReport | null {
  const line = stdout
    .split('\n')
    .filter((each) => each.startsWith('{'))
    .at(-1);
  return line === undefined ? null : (JSON.parse(line) as ClientReport);
}
