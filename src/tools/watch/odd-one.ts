/** Finds the odd one out among replicas, nodes or agents that should behave alike. */
import { percent } from '../doctor/texts.ts';
import { printElapsed } from '../../server/base/elapsed.ts';
import type { QueryTally } from './query-tally.ts';

/** Fewer queries than this show nothing. Of only two, neither is the odd one out. */
const QUERIES_LEAST = 100;
const FELLOWS_LEAST = 3;
/** A value is odd if it is this many times the median and exceeds it by the minimum difference. */
const TIMES = 3;
const SHARE_MORE = 0.02;
const LATENCY_MORE_MS = 5;

/** Describes what is odd about each, by key. Normal ones are left out. */
export function oddOnes(
  fellows: readonly { readonly key: string; readonly tally: QueryTally }[],
): ReadonlyMap<string, string> {
  const odd = new Map<string, string>();
  const busy = fellows.filter(({ tally }) => tally.queries >= QUERIES_LEAST);
  if (busy.length < FELLOWS_LEAST) return odd;
  for (const { name, of, more, print } of measures) {
    const middle = middleOf(busy.map(({ tally }) => of(tally)));
    for (const { key, tally } of busy) {
      const value = of(tally);
      if (value <= TIMES * middle || value - middle < more || odd.has(key)) continue;
      odd.set(key, `${name}: ${print(value)}, the others ${print(middle)}`);
    }
  }
  return odd;
}

const measures: readonly {
  readonly name: string;
  readonly of: (tally: QueryTally) => number;
  readonly more: number;
  readonly print: (value: number) => string;
}[] = [
  {
    name: 'loses more queries',
    of: ({ lost, queries }) => lost / queries,
    more: SHARE_MORE,
    print: printShare,
  },
  {
    name: 'fails more often',
    of: ({ failed, queries }) => failed / queries,
    more: SHARE_MORE,
    print: printShare,
  },
  {
    name: 'denies more names',
    of: ({ nxdomain, queries }) => nxdomain / queries,
    more: 10 * SHARE_MORE,
    print: printShare,
  },
  {
    name: 'is slower (9 of 10 replies)',
    of: ({ latency }) => latency.quantile(0.9) ?? 0,
    more: LATENCY_MORE_MS,
    print: printElapsed,
  },
];

function printShare(share: number): string {
  return percent(share, 1);
}

function middleOf(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[(sorted.length - 1) >> 1]!;
}
