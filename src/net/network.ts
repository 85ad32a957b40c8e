import type { Counter, Gauge } from '../metrics/registry.ts';
import type { Query } from '../wire/query.ts';
import type { Protocol, Scheme } from '../wire/transports.ts';
import { UpstreamExchange, type ExchangeError } from './upstream-exchange.ts';

/** A transport by which upstreams are reached, as addresses name it; `dns` is UDP, and TCP where that must be. */
export type UpstreamScheme = Extract<Scheme, 'dns' | 'tls' | 'https'>;

/** All of them. */
export const upstreamSchemes: readonly UpstreamScheme[] = ['dns', 'tls', 'https'];

/** Where an upstream is. */
export interface UpstreamAddress {
  /** IP address; of `grpc` also `unix:` and the path of a socket, whose port means nothing. */
  readonly host: string;
  readonly port: number;
  /** Name that the certificate must have (tls, https, grpc); empty: the address must stand in it. */
  readonly serverName: string;
}

/** How to show who we are and to tell who they are: PEM; null: no certificate, and the authorities that the runtime knows. */
export interface UpstreamTls {
  readonly certificate: Buffer | null;
  readonly key: Buffer | null;
  readonly authority: Buffer | null;
}

/** What an upstream counts, whatever its transports. */
export interface UpstreamCounters {
  readonly timeouts: Counter;
  /** Messages that fitted no query that waits: late, or forged. */
  readonly strays: Counter;
  /** Queries that were held back until earlier ones had been answered, so that no burst overruns the upstream's socket. */
  readonly paced: Counter;
  /** Queries that were not sent because as many as may be were under way on the connection. */
  readonly rejects: Counter;
  /** UDP sockets and connections open now. */
  readonly sockets: Pick<Gauge, 'add'>;
}

/** What one upstream over one protocol is made of. */
export interface UpstreamParts {
  readonly address: UpstreamAddress;
  readonly proto: Protocol;
  readonly tls: UpstreamTls | null;
  /** Idle connections are closed after this, milliseconds. */
  readonly expireMs: number;
  /** Connections are not used longer than this; 0: no limit. */
  readonly maxAgeMs: number;
  /** Idle connections kept; 0: no limit. */
  readonly maxIdle: number;
  /** UDP sockets, hence source ports, that queries are spread over. */
  readonly sourcePorts: number;
  /** Connections open at a time. */
  readonly maxConnections: number;
  /** Queries that may lie unread at the upstream (udp). */
  readonly burst: number;
  /** Local address to send from, or empty. */
  readonly source: string;
  readonly httpMethod: 'POST' | 'GET';
  readonly counters: UpstreamCounters;
}

/** What came back: a whole message whose question fits the query; `bytes` is owned by the receiver. */
export interface ExchangeReply {
  readonly bytes: Uint8Array;
  /** UDP only: the upstream set TC, or the datagram was too big to be whole. */
  readonly truncated: boolean;
  /** Whether an open connection was used again (udp: a pooled socket). */
  readonly reused: boolean;
}

/** One upstream over one transport: sockets, ids, timeouts, checks of what comes back. */
export interface Upstream {
  readonly parts: UpstreamParts;
  /**
   * Sends the exchange's query (its bytes, with the flags of `query.flags` and a fresh random id) and waits for the reply with
   * that id, from that address, to that question (in any spelling). Whatever else comes is passed over until the time is up: it
   * may be forged.
   * @param now the clock's time
   */
  start(exchange: UpstreamExchange, timeoutMs: number, now: number): void;
  close(): void;
}

/** Makes upstreams; in tests, a scripted one. */
export interface Network {
  upstream(parts: UpstreamParts): Upstream;
}

/** One exchange as a promise, which rejects with ExchangeError. For what is rare: probes, tests. */
export function ask(
  upstream: Upstream,
  query: Query,
  timeoutMs: number,
  now: number,
): Promise<ExchangeReply> {
  return new Promise((resolve, reject) => {
    upstream.start(new PromisedExchange(query, resolve, reject), timeoutMs, now);
  });
}

class PromisedExchange extends UpstreamExchange {
  readonly #resolve: (reply: ExchangeReply) => void;
  readonly #reject: (error: ExchangeError) => void;

  constructor(
    query: Query,
    resolve: (reply: ExchangeReply) => void,
    reject: (error: ExchangeError) => void,
  ) {
    super();
    this.query = query.keep();
    this.#resolve = resolve;
    this.#reject = reject;
  }

  override replied(
    bytes: Uint8Array,
    start: number,
    end: number,
    truncated: boolean,
    reused: boolean,
  ): void {
    // Not slice: of a Buffer it is a view.
    this.#resolve({ bytes: new Uint8Array(bytes.subarray(start, end)), truncated, reused });
  }

  override failed(error: ExchangeError): void {
    this.#reject(error);
  }
}

/** An upstream whose exchanges are promises; a rejection must be an ExchangeError. */
export function promisedUpstream(
  parts: UpstreamParts,
  exchange: (query: Query, timeoutMs: number) => Promise<ExchangeReply>,
  now: () => number,
  close: () => void = () => {},
): Upstream {
  return {
    parts,
    start(waiting, timeoutMs) {
      exchange(waiting.query, timeoutMs).then(
        ({ bytes, truncated, reused }) =>
          waiting.replied(bytes, 0, bytes.length, truncated, reused, now()),
        (error: ExchangeError) => waiting.failed(error, now()),
      );
    },
    close,
  };
}
