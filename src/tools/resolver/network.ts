/**
 * The interface through which resolver models open sockets, send and wait. There are two implementations:
 * `scripted.ts`, with scripted answers in virtual time, and a live one in cli/, with real sockets. Nothing here depends
 * on a particular resolver.
 */
import type { Clock } from '../../server/base/clock.ts';
import type { SocketKind } from '../../server/wire/transports.ts';
import { sameName, type ClientReply } from './reply.ts';

/** The size that a client advertises (RFC 6891). `cookie` adds a COOKIE option (RFC 7873). */
export interface ClientEdns {
  readonly size: number;
  readonly cookie: boolean;
}

export interface QueryToSend {
  readonly id: number;
  /** Absolute, in the client's spelling. */
  readonly name: string;
  readonly type: string;
  readonly edns: ClientEdns | null;
  /** Sets the AD bit, which requests validation (`trust-ad`). */
  readonly ad: boolean;
  /** The reason: one sentence. */
  readonly why: string;
  /** True if it is sent by a relay between client and server on the client's behalf. */
  readonly relayed?: boolean;
}

/** True if a reply matches this query by ID, type and name (ignoring case). */
export function isReplyTo(reply: ClientReply, query: QueryToSend): boolean {
  return query.id === reply.id && query.type === reply.type && sameName(query.name, reply.name);
}

/** A query that was sent, with its outcome. */
export interface SentQuery extends Omit<QueryToSend, 'relayed'> {
  /** Milliseconds since the start of the trace. */
  readonly atMs: number;
  readonly server: string;
  readonly serverPort: number;
  readonly protocol: SocketKind;
  /** Source ports are numbered in order of first use. */
  readonly port: number;
  /** Null if nothing was actually sent. */
  readonly sourcePort: number | null;
  /** The same for all queries sent in one turn of the event loop, or null if nothing was sent. */
  readonly turn: number | null;
  readonly wireId: number;
  /** Query IDs are numbered in order of first use. Equal IDs have equal numbers. */
  readonly id: number;
  /** A label for the answer, where `DROP` means no reply and `CLOSED` means that the port is closed. */
  answer: string;
  answeredAtMs: number | null;
  reply: ClientReply | null;
  /** The client's reaction to the answer, in full sentences. */
  outcome: string;
  /** Index of the lookup, starting at 0. */
  readonly lookup: number;
  /**
   * True if it was sent by a relay between client and server, in which case `outcome` does not describe the client's
   * conclusions.
   */
  readonly relayed: boolean;
}

/**
 * refused: ICMP port unreachable, or TCP connection refused. unreachable: the kernel could not find the host. no-route:
 * the kernel has no route. reset, closed: the peer reset or closed a TCP connection. timeout: nothing arrived in time
 * (only when connecting over TCP).
 */
export type Fault = 'refused' | 'reset' | 'unreachable' | 'no-route' | 'closed' | 'timeout';

/** Something that arrived at a socket, either a reply or a fault reported by the kernel. */
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
  /** Source ports are numbered from 1 in order of first use. 0 if nothing has been sent yet. */
  readonly port: number;
  /**
   * Connects a UDP socket to one server. From then on, the kernel reports errors on that path at the next `send` or
   * `wait`, and drops packets from other addresses.
   * @param allErrors also reports an unreachable host, not only a closed port (Linux: IP_RECVERR, which only glibc
   * sets)
   * @returns the fault if there is no route
   */
  connect(server: string, allErrors?: boolean): Fault | null;
  /** Returns a fault if the kernel had one pending or detected it immediately, in which case nothing was sent. */
  send(query: QueryToSend, server: string): SentQuery | Fault;
  /** Returns the oldest unread arrival, or null if there is none. */
  take(): Arrival | null;
  /** Returns the next arrival, or null at the time `until` (in ms on the network's clock, or Infinity for no limit). */
  wait(until: number): Promise<Arrival | null>;
  /** Calls `run` on each arrival until the returned function is called. For clients that wait on several sockets. */
  watch(run: () => void): () => void;
  close(): void;
}

export interface ClientNetwork {
  readonly clock: Clock;
  readonly serverPort: number;
  udp(): Socket;
  /** Opens a TCP connection, which has to be established by `until`. */
  tcp(server: string, until: number): Promise<Socket | Fault>;
}

/** Returns false if `until` comes first. */
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
