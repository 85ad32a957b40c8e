/** Formats numbers, shares and times compactly for the live view. */
import { printElapsed } from '../../../server/base/elapsed.ts';
import type { StyledSpan } from '../screen/styled-line.ts';
import type { Latency, Party, LiveCounts } from '../../../tools/watch/view.ts';

/** A number in at most six columns, such as `9999`, `12.3k` or `4.1M`. */
export function printNumber(value: number): string {
  if (value < 10_000) return String(Math.round(value));
  const [unit, by] = value < 1e6 ? ['k', 1e3] : value < 1e9 ? ['M', 1e6] : ['G', 1e9];
  const scaled = value / by;
  return `${scaled < 99.95 ? scaled.toFixed(1) : scaled.toFixed(0)}${unit}`;
}

/** A rate: `0`, `0.3/s`, `12/s`, `1234/s`. */
export function printRate(perSecond: number): string {
  if (perSecond === 0) return '0/s';
  return `${perSecond < 9.95 ? perSecond.toFixed(1) : printNumber(perSecond)}/s`;
}

/** Formats a share between 0 and 1 as `0 %`, `<1 %` or `61 %`. Anything below 1 is never printed as 100. */
export function printShare(share: number): string {
  if (share > 0 && share < 0.01) return '<1 %';
  return `${share >= 1 ? 100 : Math.min(99, Math.round(share * 100))} %`;
}

/** The share that a count has in another one. */
export function printPart(count: number, all: number): string {
  return printShare(all === 0 ? 0 : count / all);
}

/** The time of day, UTC: `12:03:17`. */
export function printTime(ms: number): string {
  return new Date(ms).toISOString().slice(11, 19);
}

/** `12:03:17 to 12:04:02`, or only `12:03:17` if both are in the same second. */
export function printSpan(fromMs: number, toMs: number): string {
  const [from, to] = [printTime(fromMs), printTime(toMs)];
  return from === to ? from : `${from} to ${to}`;
}

/** The time of day with milliseconds. */
export function printMoment(ms: number): string {
  return new Date(ms).toISOString().slice(11, 23);
}

/** An age or a duration: `3 s`, `2 min`, `5 h`. */
export function printAge(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 100) return `${seconds} s`;
  return seconds < 6000 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

/** Formats milliseconds in few columns; `-` for null. */
export function printLatency(ms: number | null): string {
  return ms === null ? '-' : printElapsed(ms);
}

/** A latency, coloured by its severity. */
export function latencySpan(ms: number | null): StyledSpan {
  if (ms === null) return ['-', 'dim'];
  return [printElapsed(ms), ms >= 1000 ? 'bad' : ms >= 100 ? 'warn' : 'plain'];
}

/** A count that should be zero, in colour if it is not. */
export function badCount(count: number): StyledSpan {
  return count === 0 ? ['0', 'dim'] : [printNumber(count), 'bad'];
}

/** The share of queries that could not succeed. */
export function wasteSpan({ wasted, queries }: Pick<LiveCounts, 'wasted' | 'queries'>): StyledSpan {
  const share = queries === 0 ? 0 : wasted / queries;
  return [printShare(share), share >= 0.5 ? 'warn' : share === 0 ? 'dim' : 'plain'];
}

/** `p50 0.4 ms  p90 1.2 ms  p99 12 ms  p99.9 40 ms  max 5.01 s`. */
export function printLatencies({ p50, p90, p99, p999, max }: Latency): string {
  if (p50 === null) return 'no reply yet';
  const parts = [
    ['p50', p50],
    ['p90', p90],
    ['p99', p99],
    ['p99.9', p999],
    ['max', max],
  ] as const;
  return parts.map(([name, ms]) => `${name} ${printLatency(ms)}`).join('  ');
}

/** `NOERROR 812, NXDOMAIN 1322, SERVFAIL 12`. */
export function printRcodes(rcodes: LiveCounts['rcodes']): string {
  return rcodes.map(({ rcode, count }) => `${rcode} ${printNumber(count)}`).join(', ');
}

/** The short name of a client or server: `shop/cart-7d4b9c`, or else its workload or address. */
export function partyName({
  name,
  workload,
  namespace,
  address,
}: Pick<Party, 'name' | 'workload' | 'namespace' | 'address'>): string {
  if (name !== '') return name;
  return workload === '' ? address || '-' : `${namespace}/${workload}`;
}

/** The short name with marks, for text without markup: `svc kube-system/kube-dns`, `shop/cart-7d4b9c (gone)`. */
export function partyLabel(party: Party): string {
  const { name, kind, isGone } = party;
  const shown = `${kind === 'service' && name !== '' ? 'svc ' : ''}${partyName(party)}`;
  return isGone ? `${shown} (gone)` : shown;
}

/** A long label for a client or server: `shop/cart-7d4b9c (deploy/cart, 10.244.1.7, on node7)`. */
export function partyText(party: Party): string {
  const { name, workload, address, node, kind } = party;
  if (name === '') return address || 'unknown';
  const more = [
    workload,
    kind === 'node' && name === address ? '' : address,
    node === '' || kind === 'node' ? '' : `on ${node}`,
  ].filter((each) => each !== '');
  return more.length === 0 ? partyLabel(party) : `${partyLabel(party)} (${more.join(', ')})`;
}

const LEVELS = '▁▂▃▄▅▆▇█';

/**
 * A chart drawn in a single row of characters, with the newest values on the right.
 * @param columns available width, to which steps are summed up
 */
export function sparkline(values: readonly (number | null)[], columns: number): string {
  const width = Math.max(1, Math.min(columns, values.length));
  const bins = Array.from({ length: width }, (_, at) => {
    const part = values.slice(
      Math.floor((at * values.length) / width),
      Math.floor(((at + 1) * values.length) / width),
    );
    return Math.max(0, ...part.map((each) => each ?? 0));
  });
  const most = Math.max(...bins);
  return bins
    .map((each) => (each === 0 ? ' ' : LEVELS[Math.min(7, Math.floor((each / most) * 7.999))]!))
    .join('');
}
