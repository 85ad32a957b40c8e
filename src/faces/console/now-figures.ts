/** Formats the Now page's key figures, on the server and in the browser. */
import {
  printLatency,
  printNumber,
  printPart,
  printRate,
  printShare,
} from '../cli/live/figures.ts';
import type { NowView } from '../../tools/watch/view.ts';

export interface Figure {
  readonly label: string;
  readonly value: string;
  readonly note: string;
  /** The figure's severity, where `warning` and `error` need attention. */
  readonly tone: 'plain' | 'warning' | 'error';
}

export function nowFigures(now: NowView): readonly Figure[] {
  const { rates, latency, queries, lookups, lost, failed, waste } = now;
  return [
    {
      label: 'Queries',
      value: printRate(rates.queries),
      note: `${printNumber(queries)} in this window`,
      tone: 'plain',
    },
    {
      label: 'Lookups',
      value: printRate(rates.lookups),
      note: `${printNumber(now.failedLookups)} of ${printNumber(lookups)} failed, ${printNumber(now.slowLookups)} took 1 s or more`,
      tone: now.slowLookups > 0 ? 'warning' : 'plain',
    },
    {
      label: 'Lost queries',
      value: printPart(lost, queries),
      note: `${printNumber(lost)} without a reply, ${printNumber(now.waiting)} waiting`,
      tone: lost > 0 ? 'error' : 'plain',
    },
    {
      label: 'Error replies',
      value: printPart(failed, queries),
      note: now.rcodes.map(({ rcode, count }) => `${rcode} ${printNumber(count)}`).join(', '),
      tone: failed > 0 ? 'warning' : 'plain',
    },
    {
      label: 'Wasted queries',
      value: printShare(waste.share),
      note: `by search paths: ${printNumber(waste.queries)} in this window`,
      tone: waste.share >= 0.5 ? 'warning' : 'plain',
    },
    {
      label: 'Reply time, median',
      value: printLatency(latency.p50),
      note: `p99 ${printLatency(latency.p99)}, slowest ${printLatency(latency.max)}`,
      tone: (latency.p99 ?? 0) >= 1000 ? 'warning' : 'plain',
    },
    {
      label: 'Clients',
      value: printNumber(now.clients),
      note: counted(now.servers, 'server'),
      tone: 'plain',
    },
  ];
}

/** `1 server`, `12.3k servers`. */
export function counted(count: number, one: string, many: string = `${one}s`): string {
  return `${printNumber(count)} ${count === 1 ? one : many}`;
}

/** Describes data missing from a view, such as dropped packets and lookups that were not stored. */
export function leftOut(view: {
  readonly shown?: number;
  readonly total?: number;
  readonly lostByKernel: number;
  readonly sampledShare?: number;
  readonly leftOut?: number;
}): string {
  const { shown, total, lostByKernel, sampledShare = 1, leftOut: dropped = 0 } = view;
  const parts: string[] = [];
  if (shown !== undefined && total !== undefined)
    parts.push(`${printNumber(shown)} of ${printNumber(total)} shown`);
  parts.push(`${printNumber(lostByKernel)} packets lost by the kernel`);
  if (sampledShare < 1) parts.push(`${printShare(sampledShare)} in full detail`);
  if (dropped > 0) parts.push(`${printNumber(dropped)} left out because memory ran out`);
  return parts.join(' · ');
}
