import { limit, type Limit } from '../base/limits.ts';

/** What a listener allows its clients; a reload may change it while connections are open. */
export interface ListenerLimits {
  /** Time for a TLS handshake, and again for the first query of a connection, milliseconds. */
  readonly readTimeoutMs: number;
  /** Time for a client to take its replies, milliseconds. */
  readonly writeTimeoutMs: number;
  /** Time between queries, milliseconds. */
  readonly idleTimeoutMs: number;
  /** Queries of one connection; -1: no limit. */
  readonly maxQueries: number;
  /** Connections at a time; the longest idle one makes room. */
  readonly connections: number;
  /** Connections that may be shaking hands beside those; the oldest one makes room. */
  readonly handshakes: number;
  /** Requests of one HTTP/2 connection at a time. */
  readonly streams: number;
  /** Queries of one connection that may wait for their replies; then nothing more is read from it. */
  readonly pipelined: number;
  /** Bytes of replies that one client may leave unread; then nothing more is read from it. */
  readonly unreadBytes: number;
  /**
   * Bytes that all clients of a listener together may make it hold: queries that wait, messages that are not finished, replies
   * that are not read. The connection that has held some for longest is closed.
   */
  readonly heldBytes: number;
  /** Queries that may wait for their replies; beyond it whatever would have to wait is refused. By default as many as memory allows. */
  readonly waiting: number;
}

/**
 * Connections are the default that fits comfortably into the memory of a cluster DNS server: measured, 8 kB each for TCP and
 * 52 kB for TLS.
 */
export const limits: {
  readonly connections: Limit;
  readonly secureConnections: Limit;
  /** A handshake takes a round trip or two: so many at a time are thousands a second. */
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
  /** A handshake takes a round trip or two: so many at a time are thousands a second. */
  handshakes: limit({ default: 256, min: 1, max: 65_536 }),
  /** CoreDNS allows 250, RFC 9113 recommends at least 100. */
  streams: limit({ default: 250, min: 1, max: 65_536 }),
  pipelined: limit({ default: 256, min: 1, max: 65_536 }),
  unreadBytes: limit({ default: 128 * 1024, min: 1024, max: 64 * 1024 * 1024 }),
  heldBytes: limit({ default: 16 * 1024 * 1024, min: 64 * 1024, max: 4 * 1024 * 1024 * 1024 }),
  waiting: limit({ default: 65_536, min: 1, max: 16_777_216 }),
} as const;

/** The limits of a listener when nobody says otherwise, but for the number of connections, which depends on the transport. */
export const usualLimits: Omit<ListenerLimits, 'connections'> = {
  readTimeoutMs: 3000,
  writeTimeoutMs: 5000,
  idleTimeoutMs: 10_000,
  maxQueries: -1,
  handshakes: limits.handshakes.default,
  streams: limits.streams.default,
  pipelined: limits.pipelined.default,
  unreadBytes: limits.unreadBytes.default,
  heldBytes: limits.heldBytes.default,
  waiting: limits.waiting.default,
};

/** Buffers that are asked for for UDP sockets, bytes; the system may give less (net.core.rmem_max, wmem_max). */
export const SOCKET_BUFFER: number = 4 * 1024 * 1024;
