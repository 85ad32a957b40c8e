import { limit, type Limit } from '../../base/limits.ts';

/** A listener's limits for clients. A reload may change them for open connections. */
export interface ListenerLimits {
  /** Milliseconds for a TLS handshake, and again for a connection's first query. */
  readonly readTimeoutMs: number;
  /** Milliseconds in which a client must read its replies. */
  readonly writeTimeoutMs: number;
  /** Milliseconds between two queries. */
  readonly idleTimeoutMs: number;
  /** Maximum number of queries per connection; -1: no limit. */
  readonly maxQueries: number;
  /** Maximum number of connections; at the limit, the longest idle one is closed. */
  readonly connections: number;
  /** Number of connections that stay, however short memory is. */
  readonly spared: number;
  /** Maximum number of TLS handshakes in progress, counted separately; at the limit, the oldest one is closed. */
  readonly handshakes: number;
  /** Maximum number of concurrent requests per HTTP/2 connection. */
  readonly streams: number;
  /** Maximum number of pending queries per connection; at the limit, nothing more is read from it. */
  readonly pipelined: number;
  /** Maximum bytes of unread replies per client; at the limit, nothing more is read from it. */
  readonly unreadBytes: number;
  /**
   * Maximum bytes held for all of a listener's clients together: waiting queries, incomplete messages, unread replies.
   * Beyond the limit, the connection that has been holding memory longest is closed. The default is lower if memory is
   * limited.
   */
  readonly heldBytes: number;
  /**
   * Maximum number of queries waiting for their replies; others that would have to wait are refused. The default
   * depends on the available memory.
   */
  readonly waiting: number;
}

/**
 * The default number of connections fits comfortably into the memory of a cluster DNS server: measured, 8 kB per TCP
 * connection and 52 kB with TLS.
 */
export const limits: {
  readonly connections: Limit;
  readonly secureConnections: Limit;
  /** A handshake takes one or two round trips, so this many at a time means thousands per second. */
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

/** A listener's default limits, except the number of connections, which depends on the transport. */
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

/** Requested buffer size for UDP sockets in bytes; the system may grant less (net.core.rmem_max, wmem_max). */
export const SOCKET_BUFFER: number = 4 * 1024 * 1024;
