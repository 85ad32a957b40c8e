import type { Counter, Gauge } from '../metrics/registry.ts';
import type { Query } from './query.ts';
import type { Protocol, Scheme } from '../wire/transports.ts';
import { UpstreamExchange, type ExchangeError } from './upstream/upstream-exchange.ts';

/** A transport to upstreams, with the same name as in addresses. `dns` means UDP, with TCP where necessary. */
export type UpstreamScheme = Extract<Scheme, 'dns' | 'tls' | 'https'>;

export const upstreamSchemes: readonly UpstreamScheme[] = ['dns', 'tls', 'https'];

export interface UpstreamAddress {
  /** IP address. For `grpc`, it can also be `unix:` followed by a socket path, in which case the port is unused. */
  readonly host: string;
  readonly port: number;
  /** The name that the certificate must contain (tls, https and grpc). If empty, it must contain the IP address. */
  readonly serverName: string;
}

/**
 * TLS settings for an upstream in PEM form: the client certificate (null if there is none) and the trusted CAs (null
 * for the runtime's).
 */
export interface UpstreamTls {
  readonly certificate: Buffer | null;
  readonly key: Buffer | null;
  readonly authority: Buffer | null;
}

/** An upstream's counters, for all its transports. */
export interface UpstreamCounters {
  readonly timeouts: Counter;
  /** Messages that matched no waiting query, because they were late or forged. */
  readonly strays: Counter;
  /**
   * Queries held back until earlier ones were answered, so that a burst does not overflow the upstream's receive
   * buffer.
   */
  readonly paced: Counter;
  /** Queries that were not sent because the connection had reached its limit on queries in progress. */
  readonly rejects: Counter;
  /** UDP sockets and connections currently open. */
  readonly sockets: Pick<Gauge, 'add'>;
}

export interface UpstreamParts {
  readonly address: UpstreamAddress;
  readonly proto: Protocol;
  readonly tls: UpstreamTls | null;
  /** Milliseconds after which idle connections are closed. */
  readonly expireMs: number;
  /** Maximum age of a connection; 0: no limit. */
  readonly maxAgeMs: number;
  /** Maximum number of idle connections; 0: no limit. */
  readonly maxIdle: number;
  /** Number of UDP sockets, and therefore source ports, across which queries are spread. */
  readonly sourcePorts: number;
  readonly maxConnections: number;
  /** Maximum number of queries in progress (HTTPS, gRPC). Further queries fail and are counted. */
  readonly inFlightMax: number;
  /** Maximum number of queries that the upstream has not read yet (UDP). */
  readonly burst: number;
  /** Local address to send from, or empty. */
  readonly source: string;
  readonly httpMethod: 'POST' | 'GET';
  readonly counters: UpstreamCounters;
}

/** A received reply: a complete message whose question matches the query. The receiver owns `bytes`. */
export interface ExchangeReply {
  readonly bytes: Uint8Array;
  /** UDP only: true if the upstream set TC or the datagram was longer than the receive buffer. */
  readonly truncated: boolean;
  /** True if an existing connection was used (or, for UDP, a pooled socket). */
  readonly reused: boolean;
}

/** One upstream over one transport. Handles sockets, ids, timeouts and reply checks. */
export interface Upstream {
  readonly parts: UpstreamParts;
  /**
   * Sends the exchange's query: its bytes, with the flags from `query.flags` and a new random id. Waits for the reply
   * to that question (ignoring case), with that id and from that address. Other messages are ignored until the timeout,
   * because they may be forged.
   * @param now the clock's current time
   */
  start(exchange: UpstreamExchange, timeoutMs: number, now: number): void;
  close(): void;
}

/** Creates upstreams; scripted in tests. */
export interface Network {
  upstream(parts: UpstreamParts): Upstream;
}

/** Runs one exchange as a promise, which rejects with an ExchangeError. For occasional use in probes and tests. */
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
    // `slice` is unsuitable, because for a Buffer it returns a view instead of a copy.
    this.#resolve({ bytes: new Uint8Array(bytes.subarray(start, end)), truncated, reused });
  }

  override failed(error: ExchangeError): void {
    this.#reject(error);
  }
}

/** Creates an upstream from a function that returns promises. If they reject, it must be with an ExchangeError. */
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
