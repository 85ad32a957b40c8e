/** One client’s queries, in total and by server. */
import { Recognition } from '../../capture/fingerprint/recognition.ts';
import { isLost, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import type { BucketReplay } from './bucket-replay.ts';
import type { LookupThreads } from './lookup-threads.ts';
import { noOutcomes, type Outcomes } from './outcomes.ts';
import type { Rates } from './rates.ts';

export interface ClientView {
  readonly address: string;
  readonly outcomes: Outcomes;
  byTcp: number;
  withEdns: number;
  /** Of these, those for nonexistent names that the search path created. */
  wasted: number;
  reverse: number;
  lookups: number;
  /** Queries that the capture also shows after the translation of their server's address. */
  translated: number;
  readonly recognition: Recognition;
  /**
   * Start and end of its lookups since a slow one; null if there was none, or other clients had
   * many.
   */
  threads: LookupThreads | null;
  servers: Map<string, Asked>;
}

export interface Asked {
  asked: number;
  lost: number;
  /**
   * Ports of the first queries that got no reply, including those that were still open when the
   * capture ended.
   */
  silentPorts: readonly number[];
  /**
   * Rates by second since the client became busy; null if it never was, or many others were before.
   */
  rates: Rates | null;
  /** Bytes of the longest reply over UDP that came back to it. */
  longest: number;
  /** Answered queries that the node routed on with both addresses unchanged. */
  routed: number;
  /** The times of its queries since then. */
  replay: BucketReplay | null;
}

/** The most ports stored for a client whose queries get no reply. */
const PORTS_MAX = 4;
/** Most clients get all replies. */
const noPorts: readonly number[] = [];
const noServers = new Map<string, Asked>();

/** Stores the source port of an unanswered query. */
export function addPort(asked: Asked | undefined, port: number): void {
  if (asked === undefined || asked.silentPorts.length >= PORTS_MAX) return;
  if (!asked.silentPorts.includes(port)) asked.silentPorts = asked.silentPorts.concat(port);
}

/** Notes the size of a reply over UDP that came back, and whether its query had kept its addresses. */
export function addReply(asked: Asked, exchange: SeenExchange): void {
  if (exchange.protocol !== 'udp' || isLost(exchange)) return;
  asked.longest = Math.max(asked.longest, exchange.replyBytes);
  if (exchange.routed === true && exchange.hops.length === 0) asked.routed++;
}

/** Drops what only findings use. The totals and the resolver stay. */
export function forgetDetails(view: ClientView): void {
  view.threads = null;
  view.servers = noServers;
  view.recognition.settle();
}

export function newAsked(): Asked {
  return {
    asked: 0,
    lost: 0,
    longest: 0,
    routed: 0,
    silentPorts: noPorts,
    rates: null,
    replay: null,
  };
}

export function newClient(address: string): ClientView {
  return {
    address,
    outcomes: noOutcomes(),
    ...{ byTcp: 0, withEdns: 0, wasted: 0, reverse: 0, lookups: 0, translated: 0 },
    recognition: new Recognition(),
    ...{ threads: null, servers: new Map() },
  };
}
