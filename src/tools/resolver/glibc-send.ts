/**
 * The sending half of glibc for a single name (resolv/res_send.c). It sends A and AAAA in one system call from a
 * connected socket, and tries every server twice. If only one of the two replies arrives, it falls back to slower
 * serial modes, in which the process then stays. Both use TCP as soon as one reply is truncated.
 */
import { isReplyTo, type Fault, type QueryToSend, type Socket, type SentQuery } from './network.ts';
import { isServerError, type ClientReply } from './reply.ts';
import { cite } from './resolver-rules.ts';
import { note } from './trace.ts';
import type { ModelContext } from './client.ts';
import type { GlibcTraits } from './glibc-releases.ts';
import type { ResolvConf } from './resolv-conf.ts';

/** The usable replies in order of arrival. */
interface GlibcAnswers {
  readonly first: ClientReply | null;
  readonly second: ClientReply | null;
  /** True if glibc has given up on the second reply. */
  readonly late: boolean;
}

/** The replies, or the failure's errno. */
export type GlibcReplies =
  | ({ readonly ok: true } & GlibcAnswers)
  | {
      readonly ok: false;
      readonly errno: 'ECONNREFUSED' | 'ETIMEDOUT' | 'EHOSTUNREACH';
      readonly firstRcode: string;
      /** True if any reply to the question arrived in time. */
      readonly heard: boolean;
    };

/** The result of one attempt at one server. */
type GlibcAttempt =
  | ({ readonly kind: 'answers' } & GlibcAnswers)
  | { readonly kind: 'truncated' }
  | { readonly kind: 'next'; readonly fault: Fault | null };

function answers(
  first: ClientReply | null,
  second: ClientReply | null = null,
  late = false,
): GlibcAttempt {
  return { kind: 'answers', first, second, late };
}

const nothing: GlibcAttempt = { kind: 'next', fault: null };

/** Sends queries. Its modes persist across a process's lookups. */
export class GlibcTransport {
  readonly #context: ModelContext;
  readonly #conf: ResolvConf;
  readonly #traits: GlibcTraits;
  /** Set once only one of two replies has arrived, after which the process's lookups stay in serial mode. */
  #serial: boolean;
  #reopen: boolean;
  #turn: number;
  #sockets = new Map<number, Socket>();
  /** True if any server was reached, even a silent one. Otherwise, the failure is "refused". */
  #gotSomewhere = false;
  #firstRcode = 'NOERROR';
  #heard = false;

  constructor(context: ModelContext, conf: ResolvConf, traits: GlibcTraits) {
    this.#context = context;
    this.#conf = conf;
    this.#traits = traits;
    this.#reopen = conf.singleRequestReopen;
    this.#serial = conf.singleRequest || conf.singleRequestReopen;
    this.#turn =
      conf.rotate && conf.servers.length > 1 ? context.random.integer(conf.servers.length) : 0;
  }

  /**
   * Queries the servers in order until one of them answers.
   * @param queries A, AAAA or both
   */
  async send(queries: readonly QueryToSend[]): Promise<GlibcReplies> {
    const { servers, attempts, useVc, rotate } = this.#conf;
    const offset = rotate && servers.length > 1 ? this.#turn++ % servers.length : 0;
    let tcp = useVc;
    let lastFault: Fault | null = null;
    this.#gotSomewhere = false;
    this.#firstRcode = 'NOERROR';
    this.#heard = false;
    try {
      for (let attempt = 0; attempt < attempts; attempt++) {
        for (let shift = 0; shift < servers.length; shift++) {
          const index = (shift + offset) % servers.length;
          let result = tcp ? await this.#tcp(queries, index) : await this.#udp(queries, index);
          if (result.kind === 'truncated') {
            tcp = true;
            this.#closeAll();
            result = await this.#tcp(queries, index);
          }
          if (result.kind === 'answers') return { ok: true, ...result };
          if (result.kind === 'next' && result.fault !== null) lastFault = result.fault;
        }
        if (tcp) break;
      }
    } finally {
      this.#closeAll();
    }
    const errno = tcp ? errnoOf(lastFault) : this.#gotSomewhere ? 'ETIMEDOUT' : 'ECONNREFUSED';
    return { ok: false, errno, firstRcode: this.#firstRcode, heard: this.#heard };
  }

  /**
   * Milliseconds for one attempt. The first server gets the full timeout, and later ones twice the timeout divided by
   * the number of servers.
   */
  #attemptMs(index: number): number {
    const seconds = Math.trunc(this.#conf.timeoutMs / 1000);
    const share =
      index === 0 ? seconds : Math.trunc((seconds * 2 ** index) / this.#conf.servers.length);
    return Math.max(1, share) * 1000;
  }

  async #udp(queries: readonly QueryToSend[], index: number): Promise<GlibcAttempt> {
    const { clock } = this.#context.network;
    const server = this.#conf.servers[index] ?? '';
    const pair = queries.length === 2;
    for (;;) {
      const socket = this.#open(index);
      if (socket === null) return { kind: 'next', fault: 'no-route' };
      const round = new Round(queries);
      const deadline = clock.now() + this.#attemptMs(index);
      if (!round.sendNext(socket, server)) return this.#abandon('refused');
      if (pair && !this.#serial && !round.sendNext(socket, server)) {
        // The second send failed because of a pending ICMP error. The kernel has now cleared it, so glibc sends the
        // packet again.
        if (!round.sendNext(socket, server)) return this.#abandon('refused');
      }
      const result = await this.#collect(round, socket, index, deadline);
      if (result !== 'half') return result;
      const halfFrom = round.firstFrom;
      if (!this.#serial) {
        this.#serial = true;
        note(
          halfFrom,
          `The other answer of the pair is missing, so glibc now sends both queries one after the other, from the same socket. ${cite('glibc-half')}`,
        );
      } else if (!this.#reopen) {
        this.#reopen = true;
        this.#closeAll();
        note(
          halfFrom,
          `It is still missing, so both are sent one after the other, each from a separate socket. ${cite('glibc-half')}`,
        );
      } else {
        note(
          halfFrom,
          `glibc does not wait longer for the other half and returns its result. ${cite('glibc-half')}`,
        );
        return answers(round.first, null, true);
      }
    }
  }

  /** Reads replies until the round is over. 'half' means that only one of the replies arrived in time. */
  async #collect(
    round: Round,
    firstSocket: Socket,
    index: number,
    deadline: number,
  ): Promise<GlibcAttempt | 'half'> {
    const server = this.#conf.servers[index] ?? '';
    let socket = firstSocket;
    for (;;) {
      const arrival = await socket.wait(deadline);
      if (arrival === null) {
        if (round.first !== null) return 'half';
        this.#gotSomewhere = true;
        return nothing;
      }
      if (arrival.kind === 'fault') return this.#abandon(arrival.fault);
      if (!round.awaits(arrival.reply)) continue;
      this.#gotSomewhere = true;
      this.#heard = true;
      const { reply, exchange } = arrival;
      if (round.closed === 0) this.#firstRcode = reply.rcode;
      if (isServerError(reply) || isLame(reply)) {
        note(exchange, isLame(reply) ? lameText : errorText(reply));
        if (!this.#conf.strictError) {
          if (round.closed > 0) {
            // The other question has been answered. Its reply is used alone or, if it is also an error, the next
            // attempt follows.
            if (round.first === null) return nothing;
            return answers(round.first);
          }
          if (round.size === 2 && (!this.#serial || this.#traits.waitsForUnsent)) {
            round.close(reply, null, exchange);
            continue;
          }
        }
        this.#closeAll();
        return nothing;
      }
      if (reply.truncated) {
        note(exchange, `Truncated: glibc repeats both questions over TCP. ${cite('glibc-tcp')}`);
        return { kind: 'truncated' };
      }
      round.close(reply, reply, exchange);
      if (round.closed === round.size) {
        return answers(round.first, round.second);
      }
      if (this.#serial) {
        if (this.#reopen) {
          this.#closeAll();
          const fresh = this.#open(index);
          if (fresh === null) return { kind: 'next', fault: 'no-route' };
          socket = fresh;
        }
        if (!round.sendNext(socket, server)) return this.#abandon('refused');
      }
    }
  }

  async #tcp(queries: readonly QueryToSend[], index: number, again = false): Promise<GlibcAttempt> {
    const server = this.#conf.servers[index] ?? '';
    const connection = await this.#context.network.tcp(server, Infinity);
    if (typeof connection === 'string') return { kind: 'next', fault: connection };
    try {
      for (const query of queries) {
        const sent = connection.send(query, server);
        if (typeof sent === 'string') return { kind: 'next', fault: sent };
      }
      const replies: ClientReply[] = [];
      while (replies.length < queries.length) {
        const arrival = await connection.wait(Infinity);
        if (arrival === null) return nothing;
        if (arrival.kind === 'fault') {
          // The connection may have been reset because the server was restarted, so it is tried again.
          if (arrival.fault === 'reset' && !again) return await this.#tcp(queries, index, true);
          return { kind: 'next', fault: arrival.fault };
        }
        if (replies.length === 0) this.#firstRcode = arrival.reply.rcode;
        replies.push(arrival.reply);
      }
      return answers(replies[0] ?? null, replies[1]);
    } finally {
      connection.close();
    }
  }

  #open(index: number): Socket | null {
    const known = this.#sockets.get(index);
    if (known !== undefined) return known;
    const socket = this.#context.network.udp();
    if (socket.connect(this.#conf.servers[index] ?? '', true) !== null) {
      socket.close();
      return null;
    }
    this.#sockets.set(index, socket);
    return socket;
  }

  #closeAll(): void {
    for (const socket of this.#sockets.values()) socket.close();
    this.#sockets.clear();
  }

  /** After a socket error, all sockets are closed and the next server is tried. */
  #abandon(fault: Fault): GlibcAttempt {
    this.#closeAll();
    return { kind: 'next', fault };
  }
}

/** A round of questions, including which of them have been sent and settled. */
class Round {
  readonly #queries: readonly QueryToSend[];
  readonly #settled = new Set<QueryToSend>();
  #sent = 0;
  /** The reply that settled the first question. Null if there is none so far, or if it was an error. */
  first: ClientReply | null = null;
  /** The reply that settled the second question, likewise. */
  second: ClientReply | null = null;
  firstFrom: SentQuery | null = null;

  constructor(queries: readonly QueryToSend[]) {
    this.#queries = queries;
  }

  get size(): number {
    return this.#queries.length;
  }

  /** The number of questions settled by a reply or an error. */
  get closed(): number {
    return this.#settled.size;
  }

  /** Returns false if the kernel reported an error instead. */
  sendNext(socket: Socket, server: string): boolean {
    const query = this.#queries[this.#sent];
    if (query === undefined) return true;
    if (typeof socket.send(query, server) === 'string') return false;
    this.#sent++;
    return true;
  }

  awaits(reply: ClientReply): boolean {
    const query = this.#find(reply);
    return query !== undefined && !this.#settled.has(query);
  }

  /** Settles a question. `usable` is null if the reply was an error. */
  close(reply: ClientReply, usable: ClientReply | null, exchange: SentQuery | null): void {
    const query = this.#find(reply);
    if (query === undefined) return;
    if (this.#settled.size === 0) {
      this.first = usable;
      this.firstFrom = exchange;
    } else this.second = usable;
    this.#settled.add(query);
  }

  #find(reply: ClientReply): QueryToSend | undefined {
    return this.#queries.find((query) => isReplyTo(reply, query));
  }
}

/**
 * True if a reply counts as a lame referral, which is NOERROR without records from a server that is neither
 * authoritative nor recursive.
 */
function isLame(reply: ClientReply): boolean {
  return (
    reply.rcode === 'NOERROR' &&
    reply.answer.length === 0 &&
    !reply.authoritative &&
    !reply.recursionAvailable &&
    !reply.opt
  );
}

const lameText =
  'Empty, without AA and RA: glibc treats the server as lame and tries the next one.';

function errorText(reply: ClientReply): string {
  return `${reply.rcode}: unusable. glibc waits for the other family, then tries the next attempt or server. ${cite('glibc-retry')}`;
}

function errnoOf(fault: Fault | null): 'ECONNREFUSED' | 'ETIMEDOUT' | 'EHOSTUNREACH' {
  if (fault === 'refused') return 'ECONNREFUSED';
  return fault === 'unreachable' || fault === 'no-route' ? 'EHOSTUNREACH' : 'ETIMEDOUT';
}
