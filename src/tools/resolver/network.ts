/**
 * The interface of resolver models to the outside world: open sockets, send, wait. There are two
 * implementations: `scripted.ts` (answers from a script, in virtual time) and the live one in cli/, with real
 * sockets. Nothing here depends on a particular resolver.
 */
import type { Clock } from '../../server/base/clock.ts';
import type { SocketKind } from '../../server/wire/transports.ts';
import { sameName, type ClientReply } from './reply.ts';

/** RFC 6891: the size that a client offers; `cookie`: with a COOKIE option (RFC 7873). */
export interface ClientEdns {
  readonly size: number;
  readonly cookie: boolean;
}

export interface QueryToSend {
  readonly id: number;
  /** Absolute, in the client's own spelling. */
  readonly name: string;
  readonly type: string;
  readonly edns: ClientEdns | null;
  /** Sets the AD bit, which requests validation (`trust-ad`). */
  readonly ad: boolean;
  /** The reason: one sentence. */
  readonly why: string;
  /** True if a relay between client and server sends it for the client. */
  readonly relayed?: boolean;
}

/** True if a reply matches this query: same id, type and name (ignoring case). */
export function isReplyTo(reply: ClientReply, query: QueryToSend): boolean {
  return query.id === reply.id && query.type === reply.type && sameName(query.name, reply.name);
}

/** A query as sent, and its outcome; `lookups.ts` converts it to an exchange. */
export interface SentQuery {
  /** Milliseconds since the trace began. */
  readonly atMs: number;
  readonly server: string;
  readonly serverPort: number;
  readonly protocol: SocketKind;
  /** Number of the source port, in order of first use. */
  readonly port: number;
  /** Null if nothing was really sent. */
  readonly sourcePort: number | null;
  /**
   * The same number for all queries that were really sent in one turn of the event loop; null if nothing was
   * really sent.
   */
  readonly turn: number | null;
  readonly wireId: number;
  /** Number of the query id, in order of first use; equal ids have equal numbers. */
  readonly id: number;
  readonly name: string;
  readonly type: string;
  readonly edns: ClientEdns | null;
  readonly ad: boolean;
  readonly why: string;
  /** A label of the answer; `DROP`: no reply, `CLOSED`: the port is closed. */
  answer: string;
  answeredAtMs: number | null;
  reply: ClientReply | null;
  /** The client's reaction to the answer, in sentences. */
  outcome: string;
  /** Index of the lookup, from 0. */
  readonly lookup: number;
  /** True if a relay between client and server sent it; then `outcome` does not describe the client's conclusions. */
  readonly relayed: boolean;
}

/**
 * refused: ICMP port unreachable, or TCP connection refused; unreachable: the kernel gave up
 * finding the host; no-route: the kernel has no route; reset, closed: the peer reset or ended a TCP
 * connection; timeout: nothing came in time (TCP connect only).
 */
export type Fault = 'refused' | 'reset' | 'unreachable' | 'no-route' | 'closed' | 'timeout';

/** An arrival at a socket: a reply, or a fault reported by the kernel. */
export type Arrival =
  | {
      readonly kind: 'reply';
      readonly reply: ClientReply;
      readonly server: string;
      readonly exchange: SentQuery | null;
    }
  | { readonly kind: 'fault'; readonly fault: Fault; readonly server: string };

/** A UDP socket (bound to one source port) or an open TCP connection. */
export interface Socket {
  readonly protocol: SocketKind;
  /** Number of the source port, in order of first use from 1; 0: nothing was sent yet. */
  readonly port: number;
  /**
   * Connects a UDP socket to one server. From then on the kernel reports errors of that path at the next
   * `send` or `wait`, and drops packets from other addresses.
   * @param allErrors also reports an unreachable host, not only a closed port (Linux: IP_RECVERR, which glibc
   * sets and others do not)
   * @returns the fault if there is no route
   */
  connect(server: string, allErrors?: boolean): Fault | null;
  /** Returns a fault if one was pending in the kernel or found at once; then nothing was sent. */
  send(query: QueryToSend, server: string): SentQuery | Fault;
  /** The oldest unread arrival; null: none. */
  take(): Arrival | null;
  /** The next arrival, or null at the time `until` (of the network's clock, ms; Infinity: no limit). */
  wait(until: number): Promise<Arrival | null>;
  /** Calls `run` at each arrival until the returned function is called; for clients that wait on many sockets. */
  watch(run: () => void): () => void;
  close(): void;
}

export interface ClientNetwork {
  readonly clock: Clock;
  readonly serverPort: number;
  udp(): Socket;
  /** Opens a TCP connection, by the time `until` at the latest. */
  tcp(server: string, until: number): Promise<Socket | Fault>;
}

/** False if the time `until` comes first. */
export async function waitForAny(
  clock: Clock,
  sockets: readonly Socket[],
  until: number,
): Promise<boolean> {
  const delay = until - clock.now();
  return new Promise((resolve) => {
    const stops: (() => void)[] = [];
    const finish = (found: boolean): void => {
      for (const stop of stops) stop();
      timer?.cancel();
      resolve(found);
    };
    const timer = Number.isFinite(delay)
      ? clock.after(Math.max(0, delay), () => finish(false))
      : null;
    for (const socket of sockets) stops.push(socket.watch(() => finish(true)));
  });
}
