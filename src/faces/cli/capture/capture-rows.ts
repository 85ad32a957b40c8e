/** Formats exchanges and lookups as text and as JSON. */
import { printElapsed } from '../../../server/base/elapsed.ts';
import {
  isLost,
  latencyOf,
  type SeenExchange,
  type SeenLookup,
  isEmpty,
} from '../../../tools/capture/pair/seen-exchange.ts';
import { messageDocument, type MessageDocument, type Peer } from '../../../server/wire/exchange.ts';
import { printOption } from '../../../server/wire/edns-print.ts';
import { FLAG, OPTION, rcodeName, TYPE, typeName } from '../../../server/wire/iana.ts';
import { readMessage } from '../../../server/wire/message.ts';
import { printData } from '../../../server/wire/print.ts';
import { ReadError } from '../../../server/wire/reader.ts';
import {
  askerDetails,
  askerDocuments,
  askerInPod,
  askerText,
  type AskerDocuments,
} from './asker-rows.ts';
import type { PeerNaming } from './capture-names.ts';
import { type Paint } from '../page.ts';
import { endingOf } from '../../../tools/watch/lookup-ending.ts';

/** Limit on addresses shown per answer. The rest are only counted. */
const SHOWN = 3;
/** Users notice lookups that take at least this long, milliseconds. */
const FELT_MS = 1000;

/** One line per exchange, with its time, client, query and result. */
export function exchangeRow(exchange: SeenExchange, name: PeerNaming, paint: Paint): string {
  const { client, stray } = exchange;
  const way = `${askerOf(exchange, paint)}${name(client)} → ${serverOf(exchange, name)}${answererOf(exchange, paint)}`;
  const question = `${typeName(exchange.type)} ${paint.strong(exchange.name)}`;
  const tcp = exchange.protocol === 'tcp' ? ' tcp' : '';
  const again = exchange.attempt > 1 ? paint.dim(` (try ${exchange.attempt})`) : '';
  const other = stray === null ? '' : paint.warn(` reply from ${name(stray)}`);
  return `${paint.dim(when(exchange, exchange.sentMs))}  ${way}${tcp}  ${question}  ${outcome(exchange, paint)}${again}${other}${framesOf(exchange, paint)}`;
}

/** The server that the client addressed, and where address translations lead: `10.96.0.10:53 ⇒ 10.244.3.7:53`. */
function serverOf({ server, hops, behind = null }: SeenExchange, name: PeerNaming): string {
  // The second one is known only from the kernel's connection tracking.
  const more = [...hops.map((hop) => hop.server), ...(behind === null ? [] : [behind])];
  return [server, ...more].map((each) => name(each)).join(' ⇒ ');
}

/** The client process to print before its address: `341cbd92c83b/curl[29549] `. */
function askerOf({ asker = null }: SeenExchange, paint: Paint): string {
  return asker === null ? '' : `${askerText(asker, paint)} `;
}

/** ` by coredns[12139]` if the server runs on this machine. */
function answererOf({ answerer = null }: SeenExchange, paint: Paint): string {
  return answerer === null || answerer.why !== null ? '' : ` by ${askerText(answerer, paint)}`;
}

/** One line for the lookup, followed by one for each name that it tried. */
export function lookupRows(lookup: SeenLookup, name: PeerNaming, paint: Paint): string {
  const { exchanges, candidates, startMs, endMs } = lookup;
  const lost = exchanges.filter(isLost).length;
  const found = endingOf(exchanges).ending === 'answered';
  const first = exchanges[0]!;
  // The name was found, but the program had to wait for it.
  const late = lost > 0 || (!isTimeless(first) && endMs - startMs >= FELT_MS);
  const mark = !found ? paint.bad('✗') : late ? paint.warn('!') : paint.good('✓');
  const counts = [
    `${exchanges.length} ${exchanges.length === 1 ? 'query' : 'queries'}`,
    ...(candidates.length > 1 ? [`${candidates.length} names`] : []),
    ...(lost > 0 ? [paint.bad(`${lost} lost`)] : []),
    ...(isTimeless(first) ? [] : [printElapsed(endMs - startMs)]),
  ];
  const head = `${paint.dim(when(first, startMs))}  ${mark} ${paint.strong(lookup.name)}  ${name({ ...first.client, port: first.client.port })}  ${counts.join(', ')}${framesOf(first, paint)}`;
  const rows = candidates.flatMap((candidate) => {
    const own = exchanges.filter((exchange) => exchange.name === candidate);
    const at = isTimeless(first) ? '-' : printElapsed(own[0]!.sentMs - startMs);
    const row = `  ${paint.dim(at.padStart(8))}  ${candidate}  ${outcomes(own, paint)}`;
    return [row, ...upstreamRows(own, startMs, name, paint)];
  });
  return [head, ...processRows(lookup, name, paint), ...rows].join('\n');
}

/** `A 192.0.2.1 0.3 ms, AAAA NODATA 0.4 ms`. */
function outcomes(exchanges: readonly SeenExchange[], paint: Paint): string {
  return exchanges
    .map(
      (exchange) =>
        `${typeName(exchange.type)} ${outcome(exchange, paint)}${exchange.protocol === 'tcp' ? ' tcp' : ''}`,
    )
    .join(', ');
}

/**
 * The queries that servers sent to answer these, with those that their servers sent, one row for each server.
 * @param exchanges for the same name
 */
function upstreamRows(
  exchanges: readonly SeenExchange[],
  fromMs: number,
  name: PeerNaming,
  paint: Paint,
  depth = 1,
): string[] {
  const question = exchanges[0]?.name;
  const sent = new Set(exchanges.flatMap(({ upstream }) => upstream ?? []));
  const groups = Map.groupBy(sent, (own) => {
    const what = own.name === question ? '' : ` for ${own.name}`;
    return `${askerText({ ...own.asker!, container: null }, paint)} asks ${serverOf(own, name)}${what}`;
  });
  return [...groups].flatMap(([text, own]) => {
    const at = printElapsed(Math.max(0, own[0]!.sentMs - fromMs)).padStart(8);
    const row = `  ${paint.dim(at)}  ${'  '.repeat(depth)}${text}  ${outcomes(own, paint)}`;
    return [row, ...upstreamRows(own, fromMs, name, paint, depth + 1)];
  });
}

function processRows({ exchanges }: SeenLookup, name: PeerNaming, paint: Paint): string[] {
  const [first] = exchanges;
  if (first === undefined || (first.asker ?? null) === null) return [];
  // Prefers a query whose process was found in time.
  const { asker } = exchanges.find((each) => each.asker?.why === null) ?? first;
  const details = askerDetails(asker!);
  const answered = exchanges.filter((each) => each.answerer?.why === null);
  const byServer = Map.groupBy(
    answered,
    (each) => `${askerInPod(each.answerer!, paint)} at ${serverOf(each, name)}`,
  );
  return [
    `  ${'asked'.padStart(8)}  by ${askerText(asker!, paint)}${details === '' ? '' : `  ${paint.dim(details)}`}`,
    ...[...byServer].map(([server, own]) => {
      // It may still have asked in a way that a capture does not show, such as over TLS.
      const isAlone = own.every(({ upstream }) => upstream?.length === 0);
      const how = isAlone ? `  ${paint.dim('no upstream query seen')}` : '';
      return `  ${'answered'.padStart(8)}  by ${server}${how}`;
    }),
  ];
}

function outcome(exchange: SeenExchange, paint: Paint): string {
  const took = latencyOf(exchange);
  if (took === null) {
    if (exchange.ending === 'open') return paint.dim('no reply yet');
    return paint.bad(exchange.ending === 'retried' ? 'no reply, retried' : 'no reply');
  }
  const text = answerOf(exchange);
  const bad = exchange.rcode !== 0 && exchange.rcode !== 3;
  return `${bad ? paint.bad(text) : text} ${paint.dim(printElapsed(took))}`;
}

/** ` #12 #14`: the packet numbers of the query and its reply, as Wireshark shows them. */
function framesOf({ queryFrame, replyFrame, logged }: SeenExchange, paint: Paint): string {
  if (logged !== undefined) return '';
  const frames = [queryFrame, replyFrame].filter((frame) => frame > 0);
  return frames.length === 0 ? '' : paint.dim(`  ${frames.map((each) => `#${each}`).join(' ')}`);
}

/** The result: `10.0.0.1, 10.0.0.2`, `NXDOMAIN`, `no such record`. */
function answerOf(exchange: SeenExchange): string {
  const truncated = (exchange.replyFlags & FLAG.TC) !== 0 ? 'truncated ' : '';
  const isAnswer = exchange.rcode === 0 && !isEmpty(exchange);
  const alone =
    exchange.rcode === 0 ? (isAnswer ? 'NOERROR' : 'NODATA') : rcodeName(exchange.rcode);
  if (exchange.logged !== undefined || exchange.reply === null) return `${truncated}${alone}`;
  try {
    const { answer, edns } = readMessage(exchange.reply);
    const why = (edns?.options ?? [])
      .filter(({ code }) => code === OPTION.EDE)
      .map((option) => ` (${printOption(option)})`)
      .join('');
    const aliases =
      exchange.type === TYPE.CNAME ? [] : answer.filter(({ type }) => type === TYPE.CNAME);
    const way = aliases
      .slice(0, SHOWN)
      .map(({ type, data }) => `CNAME ${printData(type, data)} `)
      .join('');
    if (!isAnswer) return `${truncated}${way}${alone}${why}`;
    const wanted = answer.filter(({ type }) => type === exchange.type);
    const others = answer.filter(({ type }) => type !== TYPE.CNAME);
    const shown = (wanted.length > 0 ? wanted : others).map(
      ({ type, data }) =>
        `${type === exchange.type ? '' : `${typeName(type)} `}${printData(type, data)}`,
    );
    const more = shown.length > SHOWN ? ` +${shown.length - SHOWN}` : '';
    return `${truncated}${way}${shown.slice(0, SHOWN).join(' ')}${more}${why}`.trimEnd();
  } catch (error) {
    if (!(error instanceof ReadError)) throw error;
    return isAnswer ? `${truncated}NOERROR (${exchange.answers} records)` : `${truncated}${alone}`;
  }
}

export interface ExchangeDocument extends AskerDocuments {
  readonly kind: 'Exchange';
  readonly time: string;
  readonly client: Peer & { readonly name?: string };
  readonly server: Peer & { readonly name?: string };
  readonly protocol: string;
  readonly question: { readonly name: string; readonly type: string };
  readonly verdict: string;
  readonly rcode: string | null;
  readonly latencyMs: number | null;
  readonly attempt: number;
  readonly hops: readonly {
    readonly server: Peer;
    readonly afterMs: number;
    readonly latencyMs: number | null;
  }[];
  readonly frames: readonly number[];
  /** With --process: the queries that the server sent to answer this one, if its process is known. */
  readonly upstream?: readonly UpstreamDocument[];
  readonly query: MessageDocument | null;
  readonly reply: MessageDocument | null;
}

/** A query that a server sent while it was answering one. */
export interface UpstreamDocument {
  readonly server: Peer;
  readonly question: ExchangeDocument['question'];
  readonly rcode: string | null;
  /** Milliseconds after the client's query. It is negative if other clients were already waiting for the answer. */
  readonly afterMs: number;
  readonly latencyMs: number | null;
}

/** @param peer returns the address, the port and, if known, the name */
export function exchangeDocument(
  exchange: SeenExchange,
  peer: (of: Peer) => ExchangeDocument['client'],
): ExchangeDocument {
  const { sentMs, rcode, queryFrame, replyFrame, ending } = exchange;
  return {
    kind: 'Exchange',
    time: isoTime(sentMs),
    client: peer(exchange.client),
    server: peer(exchange.server),
    protocol: exchange.protocol,
    question: questionDocument(exchange),
    verdict: ending === 'answered' ? 'answered' : ending === 'open' ? 'open' : 'lost',
    rcode: rcode < 0 ? null : rcodeName(rcode),
    latencyMs: rounded(latencyOf(exchange)),
    attempt: exchange.attempt,
    hops: exchange.hops.map((hop) => ({
      server: hop.server,
      afterMs: rounded(hop.sentMs - sentMs)!,
      latencyMs: rounded(hop.repliedMs === null ? null : hop.repliedMs - hop.sentMs),
    })),
    frames: [queryFrame, replyFrame].filter((frame) => frame > 0),
    ...askerDocuments(exchange),
    ...((exchange.upstream ?? null) !== null && {
      upstream: exchange.upstream!.map((own) => ({
        server: own.server,
        question: questionDocument(own),
        rcode: own.rcode < 0 ? null : rcodeName(own.rcode),
        afterMs: rounded(own.sentMs - sentMs)!,
        latencyMs: rounded(latencyOf(own)),
      })),
    }),
    query: documentOf(exchange.query),
    reply: exchange.reply === null ? null : documentOf(exchange.reply),
  };
}

function questionDocument({ name, type }: SeenExchange): ExchangeDocument['question'] {
  return { name, type: typeName(type) };
}

function documentOf(bytes: Uint8Array): MessageDocument | null {
  try {
    return messageDocument(bytes);
  } catch (error) {
    if (error instanceof ReadError) return null;
    throw error;
  }
}

/** Rounds to microseconds, the precision of captures. */
function rounded(value: number | null): number | null {
  return value === null ? null : Math.round(value * 1000) / 1000;
}

function micros(at: number): string {
  return String(Math.floor(at * 1000 + 0.5) % 1000).padStart(3, '0');
}

/** The last second that was printed. It is cached because most rows share their second with the row before. */
const printed = { second: Number.NaN, text: '' };

/** `2026-11-22T03:07:20.123456Z`. */
function isoTime(at: number): string {
  const ms = Math.floor(at + 0.0005);
  const second = Math.floor(ms / 1000);
  if (second !== printed.second) {
    printed.second = second;
    printed.text = new Date(second * 1000).toISOString().slice(0, 20);
  }
  return `${printed.text}${String(ms - second * 1000).padStart(3, '0')}${micros(at)}Z`;
}

/** True if the input has no timestamps, only an order of lines. */
function isTimeless({ logged }: SeenExchange): boolean {
  return logged === 'without times';
}

/** `03:07:20.123456`, UTC; `-` if unknown. */
function when(exchange: SeenExchange, at: number): string {
  return isTimeless(exchange) ? '-'.padEnd(15) : isoTime(at).slice(11, -1);
}
