/**
 * Compares a recorded run of a real resolver with a model's run. Each query's name, type, order, protocol, server,
 * shared source port, shared ID, EDNS, AD and reply must match. So must the pauses between queries, and the result.
 */
import { parseAddress, printAddress } from '../../src/server/base/ip.ts';
import { seededRandom, type Random } from '../../src/server/base/random.ts';
import { jitterSteps } from '../../src/tools/resolver/c-ares-servers.ts';
import type { SentQuery } from '../../src/tools/resolver/network.ts';
import type { Labelled, MeasuredQuery, MeasuredResult, ModelRun, Run } from './measured.ts';

/** The properties of a query that are compared between both sides. */
export interface Row {
  readonly ms: number;
  readonly protocol: string;
  readonly server: string;
  readonly port: number;
  readonly id: number;
  readonly name: string;
  readonly type: string;
  readonly edns: string;
  readonly flags: string;
  readonly answer: string;
}

/** Queries within this many milliseconds were sent together. */
const defaultTogetherMs = 12;
/**
 * Node checks for time-outs once a second. If it is late by a thousandth of a second, it notices a time-out one second
 * later.
 */
const nodeTickMs = 1000;
/**
 * Pauses may differ by this many milliseconds or by a tenth, because the machine was busy when the real runs were
 * recorded.
 */
const defaultSlackMs = 60;
/** An allowance in milliseconds for programs whose measured time includes their startup. */
const startMs = 120;

/** If retries are jittered, endless runs are only compared up to this number of queries. */
const sureQueries = 4;

/** The differences allowed between two runs of a client. */
export interface Tolerance {
  /** Queries that were sent together may be in any order. */
  readonly anyOrder: boolean;
  /** Either goroutine may run first, so the program may see the error of either family. */
  readonly anyStart: boolean;
  /** Retries are delayed at random, so a run's times must be between those with the shortest and the longest delays. */
  readonly jitter: boolean;
  /** The case of letters is random. */
  readonly anyCase: boolean;
  /** The last address may include a random byte from another message. */
  readonly garbledAddress: boolean;
  /** The milliseconds by which the measured time may be longer, because it includes a program's startup. */
  readonly startMs: number;
  readonly togetherMs: number;
  readonly slackMs: number;
  /** The milliseconds by which waits may be shorter or longer. */
  readonly tickMs: number;
}

function toleranceFor(by: Labelled): Tolerance {
  const { name, anyOrder } = by.client;
  return {
    anyOrder,
    anyStart: name === 'go' || name === 'cgo',
    jitter: (name === 'c-ares' && anyOrder) || name === 'node-resolve',
    anyCase: name === 'evdns',
    garbledAddress: name === 'musl',
    startMs: ['nslookup', 'busybox', 'java', 'getent-ahosts', 'getent-hosts', 'curl'].includes(name)
      ? startMs
      : 0,
    togetherMs: defaultTogetherMs,
    slackMs: defaultSlackMs,
    tickMs: name === 'node-resolve' ? nodeTickMs : 0,
  };
}

function rowsOfMeasured(queries: readonly MeasuredQuery[]): Row[] {
  return queries.map(([ms, protocol, server, port, id, name, type, edns, flags, answer]) => ({
    ms,
    protocol,
    server,
    port,
    id,
    name,
    type,
    edns,
    flags,
    answer,
  }));
}

function rowsOfModel(exchanges: readonly SentQuery[]): Row[] {
  const first = exchanges[0]?.atMs ?? 0;
  return exchanges.map((exchange) => ({
    ms: exchange.atMs - first,
    protocol: exchange.protocol,
    server: exchange.server,
    port: exchange.port,
    id: exchange.wireId,
    name: exchange.name,
    type: exchange.type,
    edns:
      exchange.edns === null
        ? ''
        : `edns ${exchange.edns.size}${exchange.edns.cookie ? ' opt10' : ''}`,
    flags: exchange.ad ? 'ad' : '',
    answer: exchange.answer,
  }));
}

/** The number of seeds to try if the client uses randomness. */
const seeds = 40;
const plainSeed = 7;

/** Runs the model. Without `startsInOrder`, Go's goroutines run in the usual order. */
export type ModelRuns = (random: Random, startsInOrder?: boolean) => Promise<ModelRun>;

/**
 * Compares a real run with the model, which `runs` executes with the given randomness. If the real client is random,
 * one of the model's runs must equal its run. No real wait may be shorter than with the most jitter or longer than
 * without any.
 */
export async function compareRuns(
  run: Run,
  by: Labelled,
  runs: ModelRuns,
  more: Partial<Tolerance> = {},
): Promise<string[]> {
  const first = differences(run, await runs(seededRandom(plainSeed)), by, more);
  const tolerance = { ...toleranceFor(by), ...more };
  if (first.length > 0 && tolerance.anyStart) {
    const other = differences(run, await runs(seededRandom(plainSeed), true), by, more);
    if (other.length === 0) return [];
  }
  if (!tolerance.jitter) return first;
  let found = first;
  for (let seed = 1; found.length > 0 && seed <= seeds; seed++) {
    found = differences(run, await runs(seededRandom(seed)), by, more);
  }
  if (found.length > 0) return first;
  const shortest = await runs(withJitter(jitterSteps - 1));
  const longest = await runs(withJitter(0));
  return outside(run, shortest, longest, tolerance);
}

/** A random source that always returns the same jitter. */
function withJitter(drawn: number): Random {
  const random = seededRandom(plainSeed);
  return { integer: (below) => (below === jitterSteps ? drawn : random.integer(below)) };
}

/** Queries and results that are earlier or later than the jitter allows. */
function outside(
  run: Run,
  shortest: ModelRun,
  longest: ModelRun,
  { slackMs, tickMs }: Tolerance,
): string[] {
  const found: string[] = [];
  const check = (what: string, ms: number, from: number, to: number): void => {
    const waited = to > tickMs ? tickMs : 0;
    const slack = Math.max(slackMs, 0.1 * to) + waited;
    if (ms < from - slack || ms > to + slack)
      found.push(
        `${what}: real ${ms.toFixed(0)} ms, model ${from.toFixed(0)} to ${to.toFixed(0)} ms`,
      );
  };
  const real = rowsOfMeasured(run.queries);
  const early = rowsOfModel(shortest.exchanges);
  const late = rowsOfModel(longest.exchanges);
  // If the numbers of queries differ, the runs have diverged and their times prove nothing.
  if (real.length !== early.length || real.length !== late.length) return [];
  real.forEach((row, i) => check(`query ${i + 1}`, row.ms, early[i]?.ms ?? 0, late[i]?.ms ?? 0));
  run.result.forEach(({ ms }, i) => {
    const [one, other] = [shortest.results[i]?.ms ?? 0, longest.results[i]?.ms ?? 0];
    check(`result ${i + 1}`, ms, Math.min(one, other), Math.max(one, other));
  });
  return found;
}

/** Describes the differences. Empty if there are none. */
function differences(
  run: Run,
  model: ModelRun,
  by: Labelled,
  more: Partial<Tolerance> = {},
): string[] {
  const tolerance = { ...toleranceFor(by), ...more };
  let real = rowsOfMeasured(run.queries);
  let own = rowsOfModel(model.exchanges);
  // A run that was stopped early is only compared up to that point.
  const cut = run.result.length < model.planned;
  if (cut) {
    const end = (real.at(-1)?.ms ?? 0) + tolerance.slackMs;
    own = own.filter((row) => row.ms <= end);
    real = real.filter((row) => row.ms <= end);
  }
  if (cut && tolerance.jitter) {
    real = real.slice(0, sureQueries);
    own = own.slice(0, sureQueries);
  }
  const found = compareQueries(real, own, tolerance);
  if (!cut && run.result.length !== model.results.length) {
    found.push(`${run.result.length} results, the model has ${model.results.length}`);
  }
  run.result.forEach((result, index) => {
    const answer = model.results[index];
    if (answer === undefined) return;
    found.push(...compareResult(result, answer, tolerance));
  });
  return found;
}

function compareQueries(real: readonly Row[], own: readonly Row[], tolerance: Tolerance): string[] {
  const sentTogether = groups(own, tolerance.togetherMs);
  const sizes = sentTogether.map((group) => group.length);
  const slices = sliced(real, sizes);
  const one = describe(slices, tolerance);
  const other = describe(sentTogether, tolerance);
  if (one.join('\n') === other.join('\n')) return pauses(slices, sentTogether, tolerance);
  if (tolerance.jitter && multiset(real) === multiset(own)) return [];
  const at = one.findIndex((text, index) => text !== other[index]);
  const place = at < 0 ? one.length : at;
  return [
    `query ${place + 1} of ${one.length}/${other.length}: real "${one[place] ?? 'none'}", model "${other[place] ?? 'none'}"`,
  ];
}

/** Converts rows to text. Ports and IDs are numbered by first use, and groups in random order are sorted. */
function describe(together: readonly (readonly Row[])[], tolerance: Tolerance): string[] {
  const ports = new Map<number, number>();
  const ids = new Map<number, number>();
  return together
    .flatMap((group) => (tolerance.anyOrder ? [...group].sort(byContent) : group))
    .map((row) => {
      const name = tolerance.anyCase ? row.name.toLowerCase() : row.name;
      const port = numbered(ports, row.port);
      const id = numbered(ids, row.id);
      return `${name} ${row.type} ${row.protocol} @${row.server} port ${port} id ${id} ${row.edns} ${row.flags} → ${row.answer}`;
    });
}

/** Splits the real run at the model's pauses, because its own gaps are unreliable on a busy machine. */
function sliced(rows: readonly Row[], sizes: readonly number[]): Row[][] {
  const slices: Row[][] = [];
  let start = 0;
  for (const size of sizes) {
    slices.push(rows.slice(start, start + size));
    start += size;
  }
  slices.push(rows.slice(start));
  return slices.filter((slice) => slice.length > 0);
}

function groups(rows: readonly Row[], togetherMs: number): Row[][] {
  const result: Row[][] = [];
  let start = -Infinity;
  for (const row of rows) {
    if (row.ms - start > togetherMs) {
      result.push([]);
      start = row.ms;
    }
    result.at(-1)?.push(row);
  }
  return result;
}

function byContent(one: Row, other: Row): number {
  const key = (row: Row): string =>
    `${row.name.toLowerCase()} ${row.server} ${row.type} ${row.protocol}`;
  return key(one).localeCompare(key(other));
}

function numbered(map: Map<number, number>, key: number): number {
  const known = map.get(key);
  if (known !== undefined) return known;
  map.set(key, map.size + 1);
  return map.size;
}

function multiset(rows: readonly Row[]): string {
  return rows
    .map((row) => `${row.name} ${row.type} ${row.protocol} ${row.answer}`)
    .sort()
    .join('\n');
}

function pauses(
  real: readonly (readonly Row[])[],
  own: readonly (readonly Row[])[],
  tolerance: Tolerance,
): string[] {
  if (tolerance.jitter) return [];
  const one = real.map((group) => group[0]?.ms ?? 0);
  const other = own.map((group) => group[0]?.ms ?? 0);
  const found: string[] = [];
  for (let i = 1; i < Math.min(one.length, other.length); i++) {
    const realMs = (one[i] ?? 0) - (one[i - 1] ?? 0);
    const ownMs = (other[i] ?? 0) - (other[i - 1] ?? 0);
    if (!near(realMs, ownMs, tolerance))
      found.push(`pause ${i}: real ${realMs.toFixed(0)} ms, model ${ownMs.toFixed(0)} ms`);
  }
  return found;
}

function near(one: number, other: number, { slackMs }: Tolerance): boolean {
  return Math.abs(one - other) <= Math.max(slackMs, 0.1 * Math.max(one, other));
}

function compareResult(
  real: MeasuredResult,
  own: ModelRun['results'][number],
  tolerance: Tolerance,
): string[] {
  const found: string[] = [];
  const addresses = [...new Set(own.found.addresses)].sort().join(' ');
  const measured = [...new Set(real.addrs.map(plainAddress))].sort().join(' ');
  if (addresses !== measured && !(tolerance.garbledAddress && sameButOne(addresses, measured)))
    found.push(`addresses: real "${measured}", model "${addresses}"`);
  const failure = own.found.failure;
  // curl's exit code 7 means that the name was resolved but the connection failed.
  const realOk = real.err === '';
  if (realOk !== (failure === null))
    found.push(`result: real "${real.err}", model "${failure?.text ?? 'ok'}"`);
  else if (failure !== null && !sameError(real, failure.number, failure.text)) {
    found.push(
      `error: real ${real.rc ?? ''} "${real.err}", model ${failure.number ?? ''} "${failure.text}"`,
    );
  }
  const fits = (ms: number): boolean => near(ms, own.ms, tolerance);
  if (!tolerance.jitter && !fits(real.ms) && !fits(real.ms - tolerance.startMs)) {
    found.push(`time: real ${real.ms.toFixed(0)} ms, model ${own.ms.toFixed(0)} ms`);
  }
  return found;
}

function sameButOne(one: string, other: string): boolean {
  const left = new Set(one.split(' '));
  const right = new Set(other.split(' '));
  return left.size === right.size && [...left].filter((address) => !right.has(address)).length <= 2;
}

function plainAddress(text: string): string {
  const bare = text.replace(/^\[(.*)\]$/, '$1');
  const bytes = parseAddress(bare);
  return bytes === null ? bare : printAddress(bytes);
}

/** Local ports in Go's messages are random. */
function sameError(real: MeasuredResult, number: number | null, text: string): boolean {
  if (real.rc !== undefined && number !== null && real.rc !== number) return false;
  const clean = (message: string): string => message.replace(/\S+:\d+->/g, '').trim();
  return clean(real.err) === clean(text) || (real.rc !== undefined && real.rc === number);
}
