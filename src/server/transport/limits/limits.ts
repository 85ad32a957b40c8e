import { limit, type Limit } from '../../base/limits.ts';

/** The limits that a listener applies to clients. A reload may change them while connections are open. */
export interface ListenerLimits {
  /** Milliseconds allowed for a TLS handshake, and then again for the first query on the connection. */
  readonly readTimeoutMs: number;
  /** Milliseconds within which a client must read its replies. */
  readonly writeTimeoutMs: number;
  /** Milliseconds between two queries. */
  readonly idleTimeoutMs: number;
  /** Maximum number of queries per connection; -1: no limit. */
  readonly maxQueries: number;
  /** Maximum number of connections. At the limit, the connection that has been idle longest is closed. */
  readonly connections: number;
  /** Number of connections that stay open, however short memory is. */
  readonly spared: number;
  /** Maximum number of TLS handshakes in progress, counted separately. At the limit, the oldest is aborted. */
  readonly handshakes: number;
  /** Maximum number of concurrent requests per HTTP/2 connection. */
  readonly streams: number;
  /** Maximum number of pending queries per connection. At the limit, reading from it stops. */
  readonly pipelined: number;
  /** Maximum number of bytes in unread replies per client. At the limit, reading from that client stops. */
  readonly unreadBytes: number;
  /**
   * Maximum number of bytes held for all of a listener's clients together: waiting queries, incomplete messages and
   * unread replies. Beyond the limit, the connection that has been holding memory longest is closed. The default is
   * lower if memory is limited.
   */
  readonly heldBytes: number;
  /**
   * Maximum number of queries waiting for their replies. Further queries that would have to wait are refused. The
   * default depends on the available memory.
   */
  readonly waiting: number;
}

/**
 * The default number of connections fits comfortably into a cluster DNS server's memory. A TCP connection was measured
 * to use 8 kB, and one with TLS 52 kB.
 */
export const limits: {
  readonly connections: Limit;
  readonly secureConnections: Limit;
  /** A handshake takes one or two round trips, so this many in parallel amount to thousands per second. */
  readonly handshakes: Limit;
  /** CoreDNS allows 250, RFC 9113 recommends at least 100. */
  readonly streams: Limit;
  readonly pipelined: Limit;
  readonly unreadBytes: Limit;
  readonly heldBytes: Limit;
  readonly waiting: Limit;
} = {
  connections: limit({ default: 4096, min: 1, max: 1_000_000 }),
  secureConnections: limit({ default: 1024, min: 1, max: 1_000_000 }),
  handshakes: limit({ default: 256, min: 1, max: 65_536 }),
  streams: limit({ default: 250, min: 1, max: 65_536 }),
  pipelined: limit({ default: 256, min: 1, max: 65_536 }),
  unreadBytes: limit({ default: 128 * 1024, min: 1024, max: 64 * 1024 * 1024 }),
  heldBytes: limit({ default: 16 * 1024 * 1024, min: 64 * 1024, max: 4 * 1024 * 1024 * 1024 }),
  waiting: limit({ default: 65_536, min: 1, max: 16_777_216 }),
} as const;

/** A listener's default limits, except for the number of connections, which depends on the transport. */
export const usualLimits: Omit<ListenerLimits, 'connections'> = {
  readTimeoutMs: 3000,
  writeTimeoutMs: 5000,
  idleTimeoutMs: 10_000,
  maxQueries: -1,
  spared: 16,
  handshakes: limits.handshakes.default,
  streams: limits.streams.default,
  pipelined: limits.pipelined.default,
  unreadBytes: limits.unreadBytes.default,
  heldBytes: limits.heldBytes.default,
  waiting: limits.waiting.default,
};

/** Requested buffer size for UDP sockets, in bytes. The system may grant less (net.core.rmem_max, wmem_max). */
export const SOCKET_BUFFER: number = 4 * 1024 * 1024;
