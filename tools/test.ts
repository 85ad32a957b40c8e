/**
 * Runs the tests: `node tools/test.ts [--long | --cluster | --node] [--only PATTERN] [--record] [NAME…]`.
 *
 * `npm test` runs fast tests (`*.test.ts`), and `npm run test:long` those that wait in real time (`*.long.test.ts`).
 * `npm run test:cluster` runs those that need a real API server (`*.cluster.test.ts`). `npm run test:node` runs those
 * that need a whole cluster with kubelet and containerd (`*.node.test.ts`, in `test/node/`).
 *
 * A NAME is a file, a directory, a plugin or the beginning of a file name: `npm test -- cache`. Named files run even if
 * they are of another kind, and print a line per test; without names, there is a line per file. `--only` runs tests
 * whose names match a pattern.
 *
 * The run starts with an estimate of its duration and ends with its slowest files (`test-times.ts`; `--record` stores
 * the times). Skipped tests follow, grouped by reason, and the last line is `N passed, N failed, N skipped`.
 */
import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { relative, resolve } from 'node:path';
import { run } from 'node:test';
import { spec, type TestEvent } from 'node:test/reporters';
import { parseArgs } from 'node:util';
import { installMissing } from './install.ts';
import { printCounts, TestCount } from './test-count.ts';
import { estimate, longestFirst, recordedTimes, recordTimes, slowestLines } from './test-times.ts';

interface Kind {
  readonly script: string;
  readonly patterns: readonly string[];
  /** The time limit for a test or suite. */
  readonly minutes: number;
  readonly concurrency: number;
}

const everywhere = (ending: string): readonly string[] => [`{src,test,tools,bench}/**/*${ending}`];
const cpus = Math.max(2, availableParallelism());
const kinds = {
  plain: { script: 'test', patterns: everywhere('.test.ts'), minutes: 10, concurrency: cpus },
  // Long tests measure real time, and those that also run CoreDNS share addresses and ports.
  long: {
    script: 'test:long',
    patterns: everywhere('.long.test.ts'),
    minutes: 60,
    concurrency: 1,
  },
  // The first run builds the API server.
  cluster: {
    script: 'test:cluster',
    patterns: everywhere('.cluster.test.ts'),
    minutes: 90,
    concurrency: 1,
  },
  // The first run builds all of Kubernetes.
  node: {
    script: 'test:node',
    patterns: everywhere('.node.test.ts'),
    minutes: 120,
    concurrency: 1,
  },
} as const satisfies Record<string, Kind>;

const filesOf = ({ patterns }: Kind): readonly string[] =>
  patterns.flatMap((each) => globSync(each)).toSorted();

const { values, positionals } = parseArgs({
  options: {
    long: { type: 'boolean' },
    cluster: { type: 'boolean' },
    node: { type: 'boolean' },
    only: { type: 'string' },
    record: { type: 'boolean' },
  },
  allowPositionals: true,
});
const kind: Kind = values.long
  ? kinds.long
  : values.cluster
    ? kinds.cluster
    : values.node
      ? kinds.node
      : kinds.plain;
const others = Object.values(kinds).filter((other) => other !== kind && other !== kinds.plain);
const elsewhere = new Set(others.flatMap(filesOf));
const named = positionals.length > 0;
const all = filesOf(kind).filter((file) => !elsewhere.has(file));

/**
 * Test files for a command-line word: a file, directory or pattern, otherwise a directory name or the beginning of a
 * file name.
 */
function meant(word: string): readonly string[] {
  const files = globSync(word).filter((file) => file.endsWith('.test.ts'));
  if (files.length > 0) return files;
  const within = `${word.replace(/\/$/, '')}/`;
  const inside = all.filter((file) => file.startsWith(within));
  if (inside.length > 0) return inside;
  return all.filter(
    (file) =>
      file.split('/').slice(0, -1).includes(word) || file.split('/').at(-1)!.startsWith(word),
  );
}

const files = named ? [...new Set(positionals.flatMap(meant))].toSorted() : all;
if (files.length === 0) {
  console.error(`No test file matches ${(named ? positionals : kind.patterns).join(' ')}`);
  process.exit(3);
}
if (!named) await installMissing();
const times = recordedTimes();
console.log(estimate(files, times, Math.min(kind.concurrency, files.length)));
/** Each file's duration in this run, in seconds. */
const taken = new Map<string, number>();

const count = new TestCount();
/** Events that are printed even in whole runs: failures, and what test processes write to stderr. */
const loud: ReadonlySet<string> = new Set(['test:fail', 'test:stderr']);

async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<TestEvent> {
  for await (const event of events) {
    count.take(event);
    const { type, data } = event;
    if (type === 'test:summary') {
      const { file, counts, duration_ms } = data;
      if (file === undefined) {
        yield event;
        continue;
      }
      const [path, seconds] = [relative('.', file), duration_ms / 1000];
      taken.set(path, seconds);
      if (!named) console.log(`${printCounts(counts)}  ${seconds.toFixed(1)} s  ${path}`);
    } else if (named ? type !== 'test:diagnostic' || data.file !== undefined : loud.has(type)) {
      yield event;
    }
  }
}

// Tests start ndots from its sources hundreds of times. The compile cache reduces the startup time from 0.7 s to 0.2 s.
process.env['NODE_COMPILE_CACHE'] ??= resolve('node_modules/.cache/compiled-sources');

const lines = run({
  files: [...longestFirst(files, times)],
  concurrency: kind.concurrency,
  timeout: kind.minutes * 60_000,
  argv: [],
  ...(values.only !== undefined && { testNamePatterns: [new RegExp(values.only)] }),
  execArgv: ['--disable-warning=ExperimentalWarning'],
})
  .compose(report)
  .compose(spec);
// A reader such as `head` may close the pipe before the end.
process.stdout.on('error', () => process.exit(141));
for await (const line of lines) process.stdout.write(line as string);

console.log();
for (const line of slowestLines(taken)) console.log(line);
if (values.record === true)
  recordTimes(Object.fromEntries(taken), Object.values(kinds).flatMap(filesOf));
for (const line of count.skippedLines()) console.log(line);
if (!named && kind === kinds.plain) {
  for (const other of others) {
    const { length } = filesOf(other);
    if (length > 0)
      console.log(
        `not run: ${length} ${length === 1 ? 'file' : 'files'} of npm run ${other.script}`,
      );
  }
}
console.log(count.total());
process.exitCode = count.failed === 0 && count.passed > 0 ? 0 : 1;
