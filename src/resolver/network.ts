/**
 * What a resolver model may do to the world: open sockets, send, wait. Two implementations: `scripted.ts` (answers
 * from a script, in virtual time) and the live one in cli/, with real sockets. Nothing here knows a resolver.
 */
import type { Clock } from '../base/clock.ts';
import { sameName, type ClientReply } from './reply.ts';

/** What a query travels by. */
export type Protocol = 'udp' | 'tcp';

/** RFC 6891: the size a client offers; `cookie` = with a COOKIE option (RFC 7873). */
export interface Edns {
  readonly size: number;
  readonly cookie: boolean;
}

/** One query as a model wants it sent. */
export interface QueryToSend {
  readonly id: number;
  /** Absolute, in the client's own spelling. */
  readonly name: string;
  readonly type: string;
  readonly edns: Edns | null;
  /** Sets the AD bit: the client would like to know about DNSSEC (`trust-ad`). */
  readonly ad: boolean;
  /** Why it is sent: one sentence for a person. */
  readonly why: string;
  /** Sent on the client's behalf by something between it and the server. */
  readonly relayed?: boolean;
}

/** Whether a reply is to this query: its id, its type, its name in whatever case. */
export function isReplyTo(reply: ClientReply, query: QueryToSend): boolean {
  return query.id === reply.id && query.type === reply.type && sameName(query.name, reply.name);
}

/** One query as a model sent it, and what became of it there; `lookups.ts` makes an exchange of it. */
export interface SentQuery {
  /** Milliseconds since the trace began. */
  readonly atMs: number;
  readonly server: string;
  readonly serverPort: number;
  readonly protocol: Protocol;
  /** Source port, numbered in order of first use. */
  readonly port: number;
  /** The source port itself; null where nothing was sent. */
  readonly sourcePort: number | null;
  /** The same for all that was really sent in one go; null where nothing was sent. */
  readonly turn: number | null;
  /** Query id as sent. */
  readonly wireId: number;
  /** The same id gets the same number; numbered in order of first use. */
  readonly id: number;
  readonly name: string;
  readonly type: string;
  readonly edns: Edns | null;
  readonly ad: boolean;
  readonly why: string;
  /** `DROP` = no answer ever came, `CLOSED` = nobody listens on the port. */
  answer: string;
  answeredAtMs: number | null;
  reply: ClientReply | null;
  /** What the client did with the answer: sentences. */
  outcome: string;
  /** Which lookup of the run it belongs to, from 0. */
  readonly lookup: number;
  /** Sent by something between client and server: what the client concludes is not said of it. */
  readonly relayed: boolean;
}

/**
 * refused: ICMP port unreachable, or TCP connection refused; unreachable: the kernel gave up finding the host; no-route:
 * the kernel has no route; reset, closed: the peer reset or ended a TCP connection; timeout: nothing came in time (TCP
 * connect only).
 */
export type Fault = 'refused' | 'reset' | 'unreachable' | 'no-route' | 'closed' | 'timeout';

/** What reaches a socket: a reply, or a fault that the kernel reports. */
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
  readonly protocol: Protocol;
  /** Source ports are numbered in order of first use, from 1; 0 = nothing sent yet. */
  readonly port: number;
  /**
   * Ties a UDP socket to one server: from now on the kernel reports errors of that path (the next `send` or `wait`
   * gets them) and drops what comes from elsewhere. Returns the fault if there is no route. `allErrors`: report an
   * unreachable host too, not only a closed port (Linux: IP_RECVERR, which glibc sets and others do not).
   */
  connect(server: string, allErrors?: boolean): Fault | null;
  /** Sends; a string is a fault that the kernel had pending or found at once, and then nothing has left. */
  send(query: QueryToSend, server: string): SentQuery | Fault;
  /** What has arrived already, oldest first; null = nothing. */
  take(): Arrival | null;
  /** The next arrival, or null at the time `until` (of the network's clock, ms; Infinity = no end). */
  wait(until: number): Promise<Arrival | null>;
  /** Calls `run` at each arrival until the returned function is called; for clients that wait on many sockets. */
  watch(run: () => void): () => void;
  close(): void;
}

/** Where a model opens its sockets. */
export interface ClientNetwork {
  readonly clock: Clock;
  /** The port of all servers. */
  readonly serverPort: number;
  udp(): Socket;
  /** Opens a connection, at the latest at the time `until`. */
  tcp(server: string, until: number): Promise<Socket | Fault>;
}

/** Waits until one of the sockets has something or the time is `until`; false = time is up. */
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
