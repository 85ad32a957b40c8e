/**
 * Real clients: small programs that look a name up as applications do, one for each resolver. They are compiled by what this machine has,
 * once, and kept in the user's cache; where a compiler or a library is missing, its name is said, and the client's model stands in.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findProgram, runProgram, type ProgramResult } from '../linux/programs.ts';
import type { Environment } from '../base/environment.ts';

/** A client that this machine can run, or why it cannot. `NAME FAMILY(0|4|6) COUNT` follow its words. */
export type RealClient =
  | { readonly words: readonly string[]; readonly missing: null }
  | { readonly words: null; readonly missing: string };

/** What a real client prints for each lookup. */
export interface ClientReport {
  /** What it was told; `''`: nothing is wrong. */
  readonly err: string;
  readonly ms: number;
  readonly addrs: readonly string[];
}

/** Sources of the clients. */
const SOURCES = new URL('../../src/lab/clients/', import.meta.url);

interface Recipe {
  /** The program that compiles it. */
  readonly needs: string;
  /** What else it takes, for the message of a compiler that fails. */
  readonly library: string;
  /** Below `SOURCES`: a file, or a folder of files. */
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
    // GODEBUG and the go line of the module decide about EDNS: both as a current program has them.
    env: { CGO_ENABLED: '0', GOTOOLCHAIN: 'local', GOFLAGS: '-buildvcs=false', GODEBUG: '' },
  },
  evdns: {
    needs: 'gcc',
    library: 'libevent-dev',
    source: 'evdns.c',
    compile: (source, to) => ['gcc', '-O1', '-o', to, source, '-levent'],
  },
};

/** A compiler that takes longer has stopped, milliseconds. */
const COMPILE_MS = 180_000;
const made = new Map<string, Promise<RealClient>>();

/** A client by the name of its resolver: compiled on first use, and found again later. */
export function realClient(name: string, env: Environment): Promise<RealClient> {
  const known = made.get(name);
  if (known !== undefined) return known;
  const making = make(name, env);
  made.set(name, making);
  return making;
}

async function make(name: string, env: Environment): Promise<RealClient> {
  const recipe = recipes[name];
  if (recipe === undefined) return { words: null, missing: `there is no program of ${name}` };
  const source = fileURLToPath(new URL(recipe.source, SOURCES));
  if (!existsSync(source)) return { words: null, missing: `its source is not there: ${source}` };
  const folder = cacheFolder(env);
  const program = join(folder, `${name}-${digest(source)}`);
  if (existsSync(program)) return { words: [program], missing: null };
  if (findProgram(recipe.needs, env['PATH'] ?? '') === null)
    return { words: null, missing: `needs ${recipe.needs} (${recipe.library})` };
  const partial = `${program}.${process.pid}`;
  const result = await compile(recipe, source, partial, {
    ...env,
    GOCACHE: join(folder, 'go-build'),
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
  // Another lab may compile it as well: whoever is last puts the same program there.
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

/** The user's cache (XDG Base Directory Specification). */
function cacheFolder({ XDG_CACHE_HOME: cache, HOME: home }: Environment): string {
  const base = cache || (home ? join(home, '.cache') : tmpdir());
  return join(base, 'ndots', 'lab-clients');
}

/** Of a source file, or of all in a folder. */
function digest(source: string): string {
  const hash = createHash('sha256');
  const files = source.endsWith('.c') ? [source] : readdirSync(source).map((n) => join(source, n));
  for (const file of files.toSorted((a, b) => a.localeCompare(b))) hash.update(readFileSync(file));
  return hash.digest('hex').slice(0, 12);
}

/** What a client has printed: the lookup that counts is the last one. Null: it has printed nothing. */
export function readReport({ stdout }: Pick<ProgramResult, 'stdout'>): ClientReport | null {
  const line = stdout
    .split('\n')
    .filter((each) => each.startsWith('{'))
    .at(-1);
  return line === undefined ? null : (JSON.parse(line) as ClientReport);
}
