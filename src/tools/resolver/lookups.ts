/** Converts a model's run into lookups and exchanges, which is the form used for dnstap and captures. */
import type { Exchange, Lookup } from '../../server/wire/exchange.ts';
import { queryBytes } from './query-bytes.ts';
import { replyBytes } from './reply-bytes.ts';
import type { LookupRun } from './run-lookup.ts';
import type { SentQuery } from './network.ts';
import { leftTogether } from './trace.ts';

/** An exchange, along with the model's knowledge about it. Times are relative to the run's first query. */
export interface TracedExchange extends Exchange {
  readonly protocol: 'udp' | 'tcp';
  readonly sent: SentQuery;
  /** Equal numbers were sent together. Starts at 1. */
  readonly batch: number;
  /** The number of milliseconds that the client waited for a missing reply, or null if it got one. */
  readonly waitedMs: number | null;
}

export function lookupsOf(run: LookupRun): readonly Lookup<TracedExchange>[] {
  const origin = originOf(run);
  const batches = batchesOf(run.trace.exchanges);
  return run.results.map(({ startMs, elapsedMs }, index) => {
    const sent = run.trace.exchanges.filter((exchange) => exchange.lookup === index);
    const endMs = startMs + elapsedMs;
    return {
      name: run.plan.name,
      startMs: startMs - origin,
      endMs: endMs - origin,
      exchanges: sent.map((exchange) => ({
        ...traced(exchange, sent, endMs, origin),
        batch: batches.get(exchange) ?? 0,
      })),
    };
  });
}

/**
 * A run's time zero. In real runs it is the first query, because earlier steps do not belong to the client. In planned
 * runs it is the start of the lookup, because there are only the client's steps.
 */
export function originOf({ live, trace }: LookupRun): number {
  return live ? (trace.exchanges[0]?.atMs ?? 0) : 0;
}

function traced(
  exchange: SentQuery,
  all: readonly SentQuery[],
  endMs: number,
  origin: number,
): Omit<TracedExchange, 'batch'> {
  const { wireId, name, type, edns, ad, why, reply, answeredAtMs } = exchange;
  return {
    protocol: exchange.protocol,
    client: { address: '', port: exchange.sourcePort ?? 0 },
    server: { address: exchange.server, port: exchange.serverPort },
    sentMs: exchange.atMs - origin,
    query: queryBytes({ id: wireId, name, type, edns, ad, why }),
    repliedMs: answeredAtMs === null ? null : answeredAtMs - origin,
    reply: reply === null ? null : (reply.bytes ?? replyBytes(reply)),
    sent: exchange,
    waitedMs: answeredAtMs === null ? goneOnAt(exchange, all, endMs) - exchange.atMs : null,
  };
}

/** Groups queries that were sent in the same system call or event-loop turn or, in a plan, at the same time. */
function batchesOf(all: readonly SentQuery[]): ReadonlyMap<SentQuery, number> {
  const batches = new Map<SentQuery, number>();
  let first: SentQuery | null = null;
  let batch = 0;
  for (const sent of all) {
    if (first === null || first.lookup !== sent.lookup || !leftTogether(sent, first)) {
      first = sent;
      batch++;
    }
    batches.set(sent, batch);
  }
  return batches;
}

/**
 * The time when the client gave up on a query. This is its next attempt at the same question, else its next query, else
 * the end.
 */
function goneOnAt(lost: SentQuery, all: readonly SentQuery[], endMs: number): number {
  const later = all.slice(all.indexOf(lost) + 1);
  const again = later.find(({ name, type }) => name === lost.name && type === lost.type);
  // Queries in the same batch were not caused by the loss.
  const next = again ?? later.find((other) => !leftTogether(other, lost));
  return next?.atMs ?? endMs;
}
