/** Packs a lookup into about a dozen bytes per query. The window stores lookups in full detail in this form. */
import { FLAG } from '../../server/wire/iana.ts';
import type { Peer } from '../../server/wire/exchange.ts';
import {
  addressOf,
  isLost,
  type Ending,
  type SeenExchange,
  type SeenLookup,
} from '../capture/pair/seen-exchange.ts';
import type { ByteReader, ByteWriter } from './byte-writer.ts';

/** The maximum number of queries to store per lookup. Clients send fewer unless no server answers. */
const QUERIES_MAX = 64;
/** The resolution of stored times, in milliseconds. */
const STEP_MS = 0.01;
/** No wait for a reply has this many steps. A clock jump is not a latency. */
const STEPS_MAX = 1e12;

/** Numbers strings within a segment. */
export interface TextNumbers {
  /** Returns a string's number, always the same. */
  of(text: string): number;
}

export interface StoredQuery extends Pick<
  SeenExchange,
  'client' | 'hops' | 'name' | 'type' | 'rcode' | 'ending' | 'protocol' | 'sentMs' | 'repliedMs'
> {
  readonly server: Peer;
  /** Null: a log does not say. */
  readonly answers: number | null;
  readonly truncated: boolean;
  readonly tcpFailed: boolean;
  readonly attempt: number;
}

export interface StoredLookup {
  readonly client: string;
  readonly name: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly queries: readonly StoredQuery[];
  /** Queries that did not fit. */
  readonly more: number;
}

const endings: readonly Ending[] = ['answered', 'retried', 'lost', 'open', 'waiting'];

/** @param baseMs a time that its start does not precede by much */
export function writeLookup(
  { client, name, startMs, endMs, exchanges }: SeenLookup,
  baseMs: number,
  texts: TextNumbers,
  out: ByteWriter,
): void {
  out.number(texts.of(client));
  out.number(texts.of(name));
  out.number(signed(startMs - baseMs));
  out.number(steps(endMs - startMs));
  const stored = Math.min(exchanges.length, QUERIES_MAX);
  out.number(exchanges.length);
  for (let at = 0; at < stored; at++) writeQuery(exchanges[at]!, startMs, texts, out);
}

function writeQuery(
  exchange: SeenExchange,
  startMs: number,
  texts: TextNumbers,
  out: ByteWriter,
): void {
  const { name, type, server, hops, sentMs, repliedMs, rcode, answers, attempt } = exchange;
  out.number(texts.of(name));
  out.number(type);
  out.number(texts.of(addressOf(server)));
  out.number(server.port);
  const flags =
    (exchange.protocol === 'tcp' ? 1 : 0) |
    (rcode >= 0 && (exchange.replyFlags & FLAG.TC) !== 0 ? 2 : 0) |
    (endings.indexOf(exchange.ending) << 2) |
    (hops.length > 0 ? 32 : 0) |
    (attempt > 1 ? 64 : 0) |
    (exchange.tcpFailed === true ? 128 : 0);
  out.number(flags);
  if (hops.length > 0) {
    out.number(hops.length);
    for (const hop of hops) out.number(texts.of(addressOf(hop.server)));
  }
  if (attempt > 1) out.number(attempt);
  out.number(steps(sentMs - startMs));
  out.number(repliedMs === null ? 0 : 1 + steps(repliedMs - sentMs));
  out.number(rcode + 1);
  out.number(exchange.logged === undefined ? answers + 1 : 0);
}

/** @param text returns the string with a number */
export function readLookup(
  from: ByteReader,
  baseMs: number,
  text: (number: number) => string,
): StoredLookup {
  const client = text(from.number());
  const name = text(from.number());
  const startMs = baseMs + unsigned(from.number());
  const endMs = startMs + from.number() * STEP_MS;
  const all = from.number();
  const queries: StoredQuery[] = [];
  const peer = { address: client, port: 0 };
  while (queries.length < Math.min(all, QUERIES_MAX))
    queries.push(readQuery(from, startMs, peer, text));
  return { client, name, startMs, endMs, queries, more: all - queries.length };
}

function readQuery(
  from: ByteReader,
  startMs: number,
  client: Peer,
  text: (number: number) => string,
): StoredQuery {
  const name = text(from.number());
  const type = from.number();
  const server = { address: text(from.number()), port: from.number() };
  const flags = from.number();
  const hops: StoredQuery['hops'][number][] = [];
  for (let left = (flags & 32) === 0 ? 0 : from.number(); left > 0; left--)
    hops.push({
      client,
      server: { address: text(from.number()), port: 0 },
      sentMs: startMs,
      ...{ repliedMs: null, port: 0, replyBytes: 0 },
    });
  const attempt = (flags & 64) === 0 ? 1 : from.number();
  const sentMs = startMs + from.number() * STEP_MS;
  const took = from.number();
  const rcode = from.number() - 1;
  return {
    ...{ client, server, hops, name, type, sentMs, rcode, attempt },
    protocol: (flags & 1) === 0 ? 'udp' : 'tcp',
    truncated: (flags & 2) !== 0,
    tcpFailed: (flags & 128) !== 0,
    ending: endings[(flags >> 2) & 7]!,
    repliedMs: took === 0 ? null : sentMs + (took - 1) * STEP_MS,
    answers: nullable(from.number()),
  };
}

/** True if a stored query should have been answered but was not. */
export function isLostQuery(query: Pick<StoredQuery, 'ending'>): boolean {
  return isLost(query);
}

function nullable(value: number): number | null {
  return value === 0 ? null : value - 1;
}

function steps(ms: number): number {
  return Math.min(STEPS_MAX, Math.max(0, Math.round(ms / STEP_MS)));
}

/** Puts the sign in the lowest bit, so that small times stay short. */
function signed(ms: number): number {
  return 2 * steps(Math.abs(ms)) + (ms < 0 ? 1 : 0);
}

function unsigned(value: number): number {
  const ms = Math.floor(value / 2) * STEP_MS;
  return value % 2 === 0 ? ms : -ms;
}
