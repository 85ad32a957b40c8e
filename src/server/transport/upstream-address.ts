import type { Counter, Gauge } from '../metrics/registry.ts';
import type { Query } from './query.ts';
import type { Protocol, Scheme } from '../wire/transports.ts';
import { UpstreamExchange, type ExchangeError } from './upstream/upstream-exchange.ts';

/** A transport to upstreams, named as in addresses; `dns` is UDP, and TCP where necessary. */
export type UpstreamScheme = Extract<Scheme, 'dns' | 'tls' | 'https'>;

/** All of them. */
export const upstreamSchemes: readonly UpstreamScheme[] = ['dns', 'tls', 'https'];

export interface UpstreamAddress {
  /** IP address; for `grpc` also `unix:` and the path of a socket, whose port is unused. */
  readonly host: string;
  readonly port: number;
  /**
   * The name that the certificate must contain (tls, https, grpc); empty: it must contain the IP
   * address.
   */
  readonly serverName: string;
}

/**
 * TLS settings for an upstream, as PEM: our certificate (null: none), and the authorities that we
 * trust (null: the runtime's).
 */
export interface UpstreamTls {
  readonly certificate: Buffer | null;
  readonly key: Buffer | null;
  readonly authority: Buffer | null;
}

/** The counters of an upstream, for all its transports. */
export interface UpstreamCounters {
  readonly timeouts: Counter;
  /** Messages that matched no waiting query: late or forged. */
  readonly strays: Counter;
  /**
   * Queries held back until earlier ones had been answered, so that a burst does not overflow the
   * upstream's receive buffer.
   */
  readonly paced: Counter;
  /** Queries not sent because the connection had as many in progress as allowed. */
  readonly rejects: Counter;
  /** UDP sockets and connections open now. */
  readonly sockets: Pick<Gauge, 'add'>;
}

/** Settings of one upstream over one protocol. */
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
  /** The number of UDP sockets, hence source ports, that queries are spread over. */
  readonly sourcePorts: number;
  /** The most open connections. */
  readonly maxConnections: number;
  /** Queries that may be in progress at a time (HTTPS, gRPC); further ones fail and are counted. */
  readonly inFlightMax: number;
  /** The most unread queries at the upstream (UDP). */
  readonly burst: number;
  /** Local address to send from, or empty. */
  readonly source: string;
  readonly httpMethod: 'POST' | 'GET';
  readonly counters: UpstreamCounters;
}

/**
 * A received reply: a whole message whose question matches the query; `bytes` belongs to the
 * receiver.
 */
export interface ExchangeReply {
  readonly bytes: Uint8Array;
  /** UDP only: the upstream set TC, or the datagram was longer than the receive buffer. */
  readonly truncated: boolean;
  /** True if an existing connection was used (UDP: a pooled socket). */
  readonly reused: boolean;
}

/** One upstream over one transport: sockets, ids, timeouts, checks of replies. */
export interface Upstream {
  readonly parts: UpstreamParts;
  /**
   * Sends the exchange's query: its bytes, with the flags of `query.flags` and a new random id.
   * Waits for the reply with that id, from that address, to that question (ignoring case). Other
   * messages are ignored until the time is up, because they may be forged.
   * @param now the clock's time
   */
  start(exchange: UpstreamExchange, timeoutMs: number, now: number): void;
  close(): void;
}

/** Makes upstreams; in tests, a scripted one. */
export interface Network {
  upstream(parts: UpstreamParts): Upstream;
}

/** One exchange as a promise, which rejects with ExchangeError. For rare use: probes, tests. */
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
    // Not `slice`, which for a Buffer makes a view instead of a copy.
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
