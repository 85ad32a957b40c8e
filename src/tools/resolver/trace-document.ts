/**
 * A trace as a document with `apiVersion: ndots.dev/v1, kind: Trace`. docs/trace.md describes every field, and
 * docs/trace.schema.json is the schema. Fields may be added, but are never changed or removed.
 */
import type { LookupRun } from './run-lookup.ts';
import type { SentQuery } from './network.ts';
import { replyBytes } from './reply-bytes.ts';
import { leftTogether } from './trace.ts';
import { messageDocument, type MessageDocument } from '../../server/wire/exchange.ts';

/** The result as the application sees it. */
export interface ResultDocument {
  readonly ok: boolean;
  /** The message that the application prints; null: success. */
  readonly error: string | null;
  /** The error's symbol in the client's API, such as `EAI_NONAME` or `ENOTFOUND`. */
  readonly code: string | null;
  readonly number: number | null;
  readonly addresses: readonly string[];
  readonly elapsedMs: number;
}

/** A query with its time, server, reason and outcome. Times are in milliseconds. */
export interface QueryDocument {
  /** Since the first query in a live trace, or since the start of a planned lookup. */
  readonly atMs: number;
  /** Equal numbers were sent together. Starts at 1. */
  readonly batch: number;
  readonly server: string;
  readonly serverPort: number;
  readonly protocol: 'udp' | 'tcp';
  /** Source ports are numbered in order of first use. */
  readonly port: number;
  /** Null if nothing was actually sent. */
  readonly sourcePort: number | null;
  /** Query IDs are numbered in order of first use. */
  readonly id: number;
  readonly wireId: number;
  readonly name: string;
  readonly type: string;
  /** `edns 1232`, followed by ` opt10` if there is a cookie. Empty without an OPT record. */
  readonly edns: string;
  readonly ad: boolean;
  /** `1 rr`, `NODATA`, `NXDOMAIN` and so on. `DROP` means no reply, and `CLOSED` means that the port is closed. */
  readonly answer: string;
  /** Addresses and CNAME targets from the answer. */
  readonly data: readonly string[];
  /** Milliseconds until the reply reached the client, or null if it never did. */
  readonly tookMs: number | null;
  /** Milliseconds that the client waited without a reply, or null if one reached it. */
  readonly waitedMs: number | null;
  /** The reply as received or planned, or null if none reached the client. */
  readonly reply: MessageDocument | null;
  readonly why: string;
  /** The client's reaction to the answer. */
  readonly outcome: string;
  /** Lookups are numbered from 1. */
  readonly lookup: number;
}

export interface TotalsDocument {
  readonly queries: number;
  /** The number of distinct source ports. */
  readonly ports: number;
  readonly names: number;
  readonly elapsedMs: number;
}

/** The same lookup with one change. */
export interface CheaperDocument {
  readonly change: string;
  readonly name: string;
  readonly queries: number;
  readonly elapsedMs: number;
  readonly ok: boolean;
  /** True if the lookup finds the same addresses. */
  readonly same: boolean;
  /** The change's cost or risk. Empty if there is none. */
  readonly caution: string;
}

export interface TraceDocument {
  readonly apiVersion: 'ndots.dev/v1';
  readonly kind: 'Trace';
  readonly client: { readonly name: string; readonly version: string; readonly summary: string };
  readonly name: string;
  readonly families: readonly number[];
  readonly live: boolean;
  /** The start of a live trace (ISO 8601), or null for a plan. */
  readonly startedAt: string | null;
  /** The source of the settings, such as `pod shop/web-0 (context prod)`. Null for this machine. */
  readonly from: string | null;
  /** Assumptions about the pod's node, such as its search domains. Null if there are none. */
  readonly assumed: string | null;
  readonly conf: {
    readonly servers: readonly string[];
    readonly search: readonly string[];
    readonly ndots: number;
    readonly timeoutMs: number;
    readonly attempts: number;
  };
  /** Lines in resolv.conf that this client ignores or reads in an unexpected way. */
  readonly remarks: readonly { readonly line: number; readonly text: string }[];
  readonly result: ResultDocument;
  /** One per lookup (`--repeat`). */
  readonly results: readonly ResultDocument[];
  readonly queries: readonly QueryDocument[];
  readonly steps: readonly {
    readonly atMs: number;
    readonly text: string;
    readonly afterQuery: number;
  }[];
  readonly totals: TotalsDocument;
  readonly cheaper: readonly CheaperDocument[];
  /** Lines that the program itself would print (GODEBUG=netdns=2). */
  readonly debug: readonly string[];
  /** True if the order in which the real client sends A and AAAA is unpredictable. */
  readonly anyOrder: boolean;
}

export function makeReport(
  run: LookupRun,
  cheaper: readonly CheaperDocument[] = [],
  about: Pick<TraceDocument, 'startedAt' | 'from' | 'assumed'> = {
    startedAt: null,
    from: null,
    assumed: null,
  },
): TraceDocument {
  const { plan, trace } = run;
  const { client } = plan;
  const conf = client.conf(plan.settings);
  const results = run.results.map(({ found, elapsedMs }) => ({
    ok: found.failure === null,
    error: found.failure?.text ?? null,
    code: found.failure?.code ?? null,
    number: found.failure?.number ?? null,
    addresses: found.addresses,
    elapsedMs: round(elapsedMs),
  }));
  return {
    apiVersion: 'ndots.dev/v1',
    kind: 'Trace',
    client: { name: client.name, version: client.version, summary: client.summary },
    name: plan.name,
    families: plan.families,
    live: run.live,
    ...about,
    conf: {
      servers: conf.servers,
      search: conf.search.map((domain) => domain.replace(/(.)\.$/, '$1')),
      ndots: conf.ndots,
      timeoutMs: conf.timeoutMs,
      attempts: conf.attempts,
    },
    remarks: conf.remarks,
    result: results[0]!,
    results,
    queries: queryDocuments(run),
    steps: trace.steps.map((step) => ({
      atMs: round(Math.max(0, step.atMs - originOf(run))),
      text: step.text,
      afterQuery: step.after,
    })),
    totals: totalsOf(run),
    cheaper,
    debug: trace.debugLines,
    anyOrder: client.anyOrder,
  };
}

export function totalsOf(run: LookupRun): TotalsDocument {
  const { exchanges } = run.trace;
  return {
    queries: exchanges.length,
    ports: new Set(exchanges.map((exchange) => exchange.port)).size,
    names: new Set(exchanges.map((exchange) => exchange.name.toLowerCase())).size,
    elapsedMs: round(run.results.reduce((sum, result) => sum + result.elapsedMs, 0)),
  };
}

/**
 * A run's time zero. In real runs it is the first query, because earlier steps do not belong to the client. In planned
 * runs it is the start of the lookup, because there are only the client's steps.
 */
function originOf({ live, trace }: LookupRun): number {
  return live ? (trace.exchanges[0]?.atMs ?? 0) : 0;
}

/** A batch has the queries sent in one system call or event-loop turn or, in a plan, at the same time. */
function queryDocuments(run: LookupRun): QueryDocument[] {
  const { exchanges } = run.trace;
  let [first] = exchanges;
  let batch = 1;
  return exchanges.map((sent) => {
    if (first!.lookup !== sent.lookup || !leftTogether(sent, first!)) {
      first = sent;
      batch++;
    }
    return queryDocument(sent, batch, run);
  });
}

function queryDocument(sent: SentQuery, batch: number, run: LookupRun): QueryDocument {
  const { edns, reply, answeredAtMs, atMs } = sent;
  return {
    atMs: round(atMs - originOf(run)),
    batch,
    server: sent.server,
    serverPort: sent.serverPort,
    protocol: sent.protocol,
    port: sent.port,
    sourcePort: sent.sourcePort,
    id: sent.id,
    wireId: sent.wireId,
    name: sent.name,
    type: sent.type,
    edns: edns === null ? '' : `edns ${edns.size}${edns.cookie ? ' opt10' : ''}`,
    ad: sent.ad,
    answer: sent.answer,
    data: (reply?.answer ?? []).map(({ type, data }) =>
      type === 'CNAME' ? `CNAME ${data}` : data,
    ),
    tookMs: answeredAtMs === null ? null : round(answeredAtMs - atMs),
    waitedMs: answeredAtMs === null ? round(goneOnAt(sent, run) - atMs) : null,
    reply: reply === null ? null : messageDocument(reply.bytes ?? replyBytes(reply)),
    why: sent.why,
    outcome: sent.outcome,
    lookup: sent.lookup + 1,
  };
}

/**
 * The time when the client gave up on a query. This is its next attempt at the same question, else its next query, else
 * the end of the lookup.
 */
function goneOnAt(lost: SentQuery, { trace: { exchanges }, results }: LookupRun): number {
  const later = exchanges
    .slice(exchanges.indexOf(lost) + 1)
    .filter(({ lookup }) => lookup === lost.lookup);
  const again = later.find(({ name, type }) => name === lost.name && type === lost.type);
  // Queries in the same batch were not caused by the loss.
  const next = again ?? later.find((other) => !leftTogether(other, lost));
  const { startMs, elapsedMs } = results[lost.lookup]!;
  return next?.atMs ?? startMs + elapsedMs;
}

function round(ms: number): number {
  return Math.round(ms * 10) / 10;
}
