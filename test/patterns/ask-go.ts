/**
 * Records how Go's regexp package handles patterns. `node test/patterns/ask-go.ts` writes recorded.json, for machines
 * without Go. A pattern's meaning in CoreDNS may change with the Go version, so the version is recorded too.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { seededRandom } from '../../src/server/base/random.ts';
import { buildDirectory } from '../kit/real-resolver.ts';
import { randomCases, written, type PatternCase } from './cases.ts';

/** Why the pattern is refused, or its matches in each text. */
export interface Answer {
  readonly error?: string;
  readonly groups: number;
  /** The group names, starting with the whole match; empty for unnamed groups. Omitted if the pattern is refused. */
  readonly names?: readonly string[];
  /**
   * The start and end of the match and of each group, in UTF-16 units; -1 for groups that did not match. Null if there
   * is no match.
   */
  readonly matches?: readonly (readonly number[] | null)[];
}

export type Recorded = PatternCase & Answer;

export function askGo(cases: readonly PatternCase[]): Recorded[] {
  const answers = runGo(cases, []) as Answer[];
  return cases.map((one, index) => ({ ...one, ...answers[index]! }));
}

/** The nanoseconds that Go needs for one text per case, without groups. */
export function timeGo(cases: readonly PatternCase[]): readonly number[] {
  return runGo(cases, ['time']) as readonly number[];
}

function runGo(cases: readonly PatternCase[], words: readonly string[]): unknown {
  const directory = buildDirectory();
  try {
    const program = `${directory.path}/patterns`;
    execFileSync('go', ['build', '-o', program, '.'], {
      cwd: new URL('go/', import.meta.url).pathname,
      env: { ...process.env, CGO_ENABLED: '0', GOTOOLCHAIN: 'local', GOFLAGS: '-buildvcs=false' },
    });
    const text = execFileSync(program, words, {
      input: JSON.stringify(cases),
      encoding: 'utf8',
      maxBuffer: 1 << 28,
    });
    return JSON.parse(text);
  } finally {
    directory.remove();
  }
}

const file = new URL('recorded.json', import.meta.url);

export function readRecorded(): { readonly go: string; readonly cases: readonly Recorded[] } {
  return JSON.parse(readFileSync(file, 'utf8')) as ReturnType<typeof readRecorded>;
}

if (import.meta.main) {
  const go = execFileSync('go', ['env', 'GOVERSION'], { encoding: 'utf8' }).trim();
  const cases = askGo([...written, ...randomCases(seededRandom(1), 200)]);
  const lines = cases.map((one) => JSON.stringify(one)).join(',\n');
  writeFileSync(file, `{"go": "${go}", "cases": [\n${lines}\n]}\n`);
}
