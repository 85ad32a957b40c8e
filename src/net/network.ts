import type { Query } from '../wire/query.ts';

/** How an upstream is reached. */
export type UpstreamProto = 'udp' | 'tcp' | 'tls' | 'https';

export interface UpstreamAddress {
  /** IP address. */
  readonly host: string;
  readonly port: number;
  /** For tls and https. */
  readonly serverName: string;
}

export interface UpstreamTls {
  readonly certificate: Buffer | null;
  readonly key: Buffer | null;
  readonly authority: Buffer | null;
}

export interface UpstreamParts {
  readonly address: UpstreamAddress;
  readonly proto: UpstreamProto;
  readonly tls: UpstreamTls | null;
  /** Idle connections are closed after this, milliseconds. */
  readonly expireMs: number;
  /** Connections are not used longer than this; 0: no limit. */
  readonly maxAgeMs: number;
  /** Idle connections kept; 0: no limit. */
  readonly maxIdle: number;
  /** Local address to send from, or empty. */
  readonly source: string;
  readonly httpMethod: 'POST' | 'GET';
}

/** Why an exchange brought no reply. */
export type ExchangeFailure =
  | 'timeout'
  | 'refused'
  | 'unreachable'
  | 'closed'
  | 'tls'
  | 'http'
  | 'local';

export class ExchangeError extends Error {
  readonly failure: ExchangeFailure;
  constructor(failure: ExchangeFailure, text: string) {
    super(text);
    this.name = 'ExchangeError';
    this.failure = failure;
  }
}

/** What came back: a whole message whose id and question fit the query; `bytes` is owned by the receiver. */
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
   * Sends the query (its bytes, with the flags of `query.flags` and a fresh random id) and waits for the reply with that id, from that
   * address, to that question (case-insensitive; what fits not is ignored until the timeout: spoofing).
   * Rejects with ExchangeError.
   */
  exchange(query: Query, timeoutMs: number): Promise<ExchangeReply>;
  close(): void;
}

/** What a network counts; numbers that only grow, except the two of what is open now. */
export interface NetworkCounters {
  exchanges: number;
  timeouts: number;
  /** Datagrams that fitted no query that waits: late, or forged. */
  strays: number;
  udpSockets: number;
  connections: number;
}

/** Makes upstreams; in tests, a scripted one. */
export interface Network {
  upstream(parts: UpstreamParts): Upstream;
}
