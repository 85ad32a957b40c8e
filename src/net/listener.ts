import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Maybe } from '../base/maybe.ts';
import type { Query } from '../wire/query.ts';
import type { Reply } from '../wire/reply.ts';

/** What answers a query: the server. It never throws and its promises never reject. */
export type Serve = (query: Query) => Maybe<Reply>;

export type Scheme = 'dns' | 'tls' | 'https' | 'grpc' | 'quic' | 'https3';

/** Where a listener listens. */
export interface Endpoint {
  readonly scheme: Scheme;
  /** An IP address (IPv6 link-local with its `%zone`), or empty for all addresses of both families. */
  readonly address: string;
  /** 0 lets the system choose; `Listener.port` says which. */
  readonly port: number;
}

export interface StreamLimits {
  /** Time for the first query of a connection, milliseconds. */
  readonly readTimeoutMs: number;
  readonly writeTimeoutMs: number;
  /** Time between queries. */
  readonly idleTimeoutMs: number;
  /** Queries per connection; -1: no limit. */
  readonly maxQueries: number;
  /** Connections at a time per listener; the longest idle one makes room. */
  readonly maxConnections: number;
}

export interface ListenerTls {
  readonly certificate: string | Buffer;
  readonly key: string | Buffer;
  readonly authority: string | Buffer | null;
  readonly requestCert: boolean;
  readonly rejectUnauthorized: boolean;
}

/** What a listener counts: plain numbers that only grow, except `connections`. Free to read at any time. */
export interface ListenerCounters {
  /** Datagrams, and messages of streams. */
  received: number;
  sent: number;
  /** Too short or no query: heard in silence. */
  ignored: number;
  /** Answered FORMERR or NOTIMP before any plugin. */
  rejected: number;
  /** Replies that could not be sent: buffer full, client unreachable, connection gone. */
  dropped: number;
  /** Queries not served because too many were waiting. */
  shed: number;
  /** Datagrams longer than the receive buffer. */
  cut: number;
  /** Stream connections open now. */
  connections: number;
  accepted: number;
  /** Connections turned away or closed to make room. */
  evicted: number;
  /** Connections closed because a time limit passed. */
  timedOut: number;
}

export function makeCounters(): ListenerCounters {
  return {
    received: 0,
    sent: 0,
    ignored: 0,
    rejected: 0,
    dropped: 0,
    shed: 0,
    cut: 0,
    connections: 0,
    accepted: 0,
    evicted: 0,
    timedOut: 0,
  };
}

export interface ListenerParts {
  readonly endpoint: Endpoint;
  readonly serve: Serve;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits: StreamLimits;
  readonly tls: ListenerTls | null;
  /** UDP sockets of this thread per address; 1 unless `multisocket` asks for more. */
  readonly sockets?: number;
  /** Counted here instead of in a counters of the listener's own. */
  readonly counters?: ListenerCounters;
}

/** One transport at one endpoint. */
export interface Listener {
  readonly endpoint: Endpoint;
  /** The port in use, once open. */
  readonly port: number;
  readonly counters: ListenerCounters;
  /** @throws Problem (`address-in-use`, `permission-denied`, `address-not-available`, `listen-failed`) */
  open(): Promise<void>;
  /** Takes no new queries, lets those in flight finish for at most `graceMs`, then closes. */
  close(graceMs: number): Promise<void>;
}
