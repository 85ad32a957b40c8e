import { limit, type Limit } from '../../base/limits.ts';

/** The limits for clients of a listener; a reload may change them for open connections. */
export interface ListenerLimits {
  /** Milliseconds for a TLS handshake, and again for the first query of a connection. */
  readonly readTimeoutMs: number;
  /** Milliseconds in which a client must read its replies. */
  readonly writeTimeoutMs: number;
  /** Milliseconds between two queries. */
  readonly idleTimeoutMs: number;
  /** The most queries of one connection; -1: no limit. */
  readonly maxQueries: number;
  /** The most connections; at the limit the longest idle one is closed. */
  readonly connections: number;
  /** The number of connections that stay, however short memory is. */
  readonly spared: number;
  /**
   * The most TLS handshakes in progress, counted separately; at the limit the oldest one is closed.
   */
  readonly handshakes: number;
  /** The most concurrent requests of one HTTP/2 connection. */
  readonly streams: number;
  /**
   * The most queries of one connection that wait for their replies; at the limit nothing more is
   * read from it.
   */
  readonly pipelined: number;
  /**
   * The most bytes of replies that one client may leave unread; at the limit nothing more is read
   * from it.
   */
  readonly unreadBytes: number;
  /**
   * The most bytes held for all clients of a listener together: queries that wait, incomplete
   * messages, unread replies. Beyond the limit the connection that has been holding some for
   * longest is closed. By default less where memory is limited.
   */
  readonly heldBytes: number;
  /**
   * Queries that may wait for their replies; further ones that would have to wait are refused. By
   * default as many as memory allows.
   */
  readonly waiting: number;
}

/**
 * The default number of connections fits comfortably into the memory of a cluster DNS server:
 * measured, 8 kB each for TCP and 52 kB for TLS.
 */
export const limits: {
  readonly connections: Limit;
  readonly secureConnections: Limit;
  /** A handshake takes one or two round trips, so this many at a time are thousands a second. */
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
  /** A handshake takes one or two round trips, so this many at a time are thousands a second. */
  handshakes: limit({ default: 256, min: 1, max: 65_536 }),
  /** CoreDNS allows 250, RFC 9113 recommends at least 100. */
  streams: limit({ default: 250, min: 1, max: 65_536 }),
  pipelined: limit({ default: 256, min: 1, max: 65_536 }),
  unreadBytes: limit({ default: 128 * 1024, min: 1024, max: 64 * 1024 * 1024 }),
  heldBytes: limit({ default: 16 * 1024 * 1024, min: 64 * 1024, max: 4 * 1024 * 1024 * 1024 }),
  waiting: limit({ default: 65_536, min: 1, max: 16_777_216 }),
} as const;

/**
 * The default limits of a listener, except the number of connections, which depends on the
 * transport.
 */
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

/**
 * Requested buffer size of UDP sockets in bytes; the system may grant less (net.core.rmem_max,
 * wmem_max).
 */
export const SOCKET_BUFFER: number = 4 * 1024 * 1024;
