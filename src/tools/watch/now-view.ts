/** The overview: totals, rates and results. */
import { typeName } from '../../server/wire/iana.ts';
import { QueryTally } from './query-tally.ts';
import type { NowSums, Series } from './view.ts';
import type { WindowCounts } from './window-counts.ts';

/** Rates are averaged over this period, in milliseconds. */
const RATE_MS = 10_000;
const SERIES_STEPS = 60;
/** The number of question types to list. */
const KINDS = 12;

/** @param spanMs the length of the window; windows longer than seconds are counted by minute */
export function nowSums(
  { seconds, minutes, kinds }: WindowCounts,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
  windowMs: number,
): NowSums {
  const slots = toMs - fromMs > windowMs ? minutes : seconds;
  const all = new QueryTally();
  for (const tally of slots.between(fromMs, toMs)) all.merge(tally);
  const recent = new QueryTally();
  const recentMs = Math.min(RATE_MS, Math.max(1000, toMs - fromMs));
  for (const tally of seconds.between(toMs - recentMs + 1, toMs)) recent.merge(tally);
  const rate = (count: number): number => count / (recentMs / 1000);
  const [types, protocols] = [new Map<string, number>(), new Map<string, number>()];
  for (const each of kinds.between(fromMs, toMs)) {
    for (const [type, count] of each.types) addCount(types, typeName(type), count);
    for (const [protocol, count] of each.protocols) addCount(protocols, protocol, count);
  }
  return {
    ...all.counts(),
    ...all.lookupCounts(),
    rates: {
      queries: rate(recent.queries),
      lookups: rate(recent.lookups),
      lost: rate(recent.lost),
      failed: rate(recent.failed),
      wasted: rate(recent.wasted),
    },
    types: mostFrequent(types).map(([type, count]) => ({ type, count })),
    protocols: mostFrequent(protocols).map(([protocol, count]) => ({ protocol, count })),
    series: seriesOf(slots, fromMs, toMs),
  };
}

function seriesOf(slots: WindowCounts['seconds'], fromMs: number, toMs: number): Series {
  const stepMs =
    Math.max(1, Math.ceil((toMs - fromMs) / SERIES_STEPS / slots.stepMs)) * slots.stepMs;
  const first = Math.floor(fromMs / stepMs);
  const steps = Math.max(1, Math.floor(toMs / stepMs) - first + 1);
  const tallies = Array.from({ length: steps }, () => new QueryTally());
  for (const [startMs, tally] of slots.steps(fromMs, toMs))
    tallies[Math.max(0, Math.floor(startMs / stepMs) - first)]?.merge(tally);
  return {
    fromMs: first * stepMs,
    stepMs,
    queries: tallies.map(({ queries }) => queries),
    lookups: tallies.map(({ lookups }) => lookups),
    lost: tallies.map(({ lost }) => lost),
    failed: tallies.map(({ failed }) => failed),
    nxdomain: tallies.map(({ nxdomain }) => nxdomain),
    wasted: tallies.map(({ wasted }) => wasted),
    p50: tallies.map(({ latency }) => latency.quantile(0.5)),
    p99: tallies.map(({ latency }) => latency.quantile(0.99)),
  };
}

function addCount(counts: Map<string, number>, key: string, count: number): void {
  counts.set(key, (counts.get(key) ?? 0) + count);
}

function mostFrequent(counts: ReadonlyMap<string, number>): readonly (readonly [string, number])[] {
  return [...counts].toSorted(([, one], [, other]) => other - one).slice(0, KINDS);
}
