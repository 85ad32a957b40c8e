/**
 * The sending half of c-ares since 1.22 (ares_process.c). Servers are sorted by recent failures, and timeouts grow with
 * jitter. Later releases added timeouts based on measured latency, EDNS with a cookie, and an answer cache that
 * includes negative answers. Since 1.29, one in ten queries probes a failed server after 5 s. These probes are random,
 * so they are not modelled.
 */
import type { Timer } from '../../server/base/clock.ts';
import type { ModelContext } from './client.ts';
import { CaresCache } from './c-ares-cache.ts';
import {
  caresQuery,
  statusOf,
  type CaresChannel,
  type CaresStatus,
  type ChannelSetup,
  type Ended,
  type PendingQuestion,
} from './c-ares-status.ts';
import type { CaresConf } from './c-ares-conf.ts';
import type { CaresTraits } from './c-ares-releases.ts';
import { CaresServers, type CaresServer } from './c-ares-servers.ts';
import { TimeoutTimer } from './c-ares-timer.ts';
import { isReplyTo, type Arrival, type QueryToSend, type Socket } from './network.ts';
import { isServerError, type ClientReply } from './reply.ts';
import { cite } from './resolver-rules.ts';
import { note } from './trace.ts';

interface Connection {
  readonly server: CaresServer;
  readonly tcp: boolean;
  /** Null while a TCP connection is being established. */
  socket: Socket | null;
  readonly questions: Set<CaresQuestion>;
  readonly waiting: CaresQuestion[];
  /** Accepts no further questions; pending ones stay. */
  retired: boolean;
}

interface CaresQuestion {
  query: QueryToSend;
  connection: Connection | null;
  tries: number;
  tcp: boolean;
  edns: boolean;
  cookieSent: boolean;
  noRetries: boolean;
  sentAt: number;
  failure: CaresStatus | null;
  timer: Timer | null;
  readonly why: string;
  readonly end: (ended: Ended) => void;
}

/** One in this many bursts of replies is read one by one, as if the replies had arrived separately. */
const readingSteps = 4;

/** Sends like c-ares since 1.22, as described at the top of this file. */
export class Channel implements CaresChannel {
  readonly #context: ModelContext;
  readonly #conf: CaresConf;
  readonly #traits: CaresTraits;
  readonly #servers: CaresServers;
  /** Newest first. */
  readonly #connections: Connection[] = [];
  readonly #open = new Set<CaresQuestion>();
  /** The time of the last read, and whether everything that had arrived by then was read together. */
  #readAt = -Infinity;
  #together = true;
  /** Steps that wait for the rest of a joint read. */
  #deferred = 0;
  readonly #timeouts: TimeoutTimer;
  readonly #cache: CaresCache;
  readonly #setup: ChannelSetup;

  constructor(context: ModelContext, conf: CaresConf, traits: CaresTraits, setup: ChannelSetup) {
    this.#context = context;
    this.#conf = conf;
    this.#traits = traits;
    this.#setup = setup;
    this.#timeouts = new TimeoutTimer(context.network.clock, setup.tickMs);
    this.#cache = new CaresCache(context.network.clock);
    this.#servers = new CaresServers(context, conf, traits);
  }

  query(name: string, type: string, why: string): PendingQuestion {
    const reply = this.#cache.get(name, type);
    if (reply !== null) {
      this.#context.trace.step(
        `c-ares has the answer for ${name} ${type} in its cache, so no query is sent`,
      );
      const done = Promise.resolve({ status: statusOf(reply), reply });
      return { done, cached: true, stopRetrying: () => {} };
    }
    const query = caresQuery(this.#context, this.#open, { name, type, why });
    const { promise: done, resolve: end } = Promise.withResolvers<Ended>();
    const question: CaresQuestion = {
      query,
      connection: null,
      tries: 0,
      tcp: this.#setup.useVc && this.#conf.useVc,
      edns: this.#setup.edns && this.#traits.ednsSize > 0,
      cookieSent: false,
      noRetries: false,
      sentAt: 0,
      failure: null,
      timer: null,
      why,
      end,
    };
    this.#open.add(question);
    this.#send(question, null);
    return {
      done,
      stopRetrying: () => {
        question.noRetries = true;
      },
    };
  }

  #send(question: CaresQuestion, wanted: CaresServer | null): void {
    const server = wanted ?? this.#servers.best();
    if (server === undefined)
      return this.#finish(question, { status: 'ECONNREFUSED', reply: null });
    const connection = this.#connectionFor(server, question.tcp);
    if (connection === null) {
      this.#servers.blame(server);
      return this.#retry(question, 'ECONNREFUSED', null);
    }
    this.#dress(question, server);
    if (connection.socket === null) connection.waiting.push(question);
    else if (typeof connection.socket.send(question.query, server.address) === 'string') {
      if (this.#traits.breaksOnSend) this.#break(connection, 'ECONNREFUSED');
      else this.#servers.blame(server);
      return this.#retry(question, 'ECONNREFUSED', null);
    }
    const { clock } = this.#context.network;
    question.connection = connection;
    connection.questions.add(question);
    question.sentAt = clock.now();
    question.timer?.cancel();
    const waitMs = this.#servers.timeoutMs(server, question.tries);
    question.timer = this.#timeouts.after(waitMs, () => {
      // Releases that close idle connections first leave this one open until the next round.
      if (!this.#traits.closesLast) this.rest();
      if (this.#traits.countsSilence) this.#servers.blame(server);
      if (this.#traits.newSocket === 'timeout') connection.retired = true;
      this.#retry(question, 'ETIMEOUT', null);
      if (this.#traits.closesLast) this.#sweepLater();
    });
  }

  /** Sets the question's OPT record. It includes a cookie until the server replies without one, but never over TCP. */
  #dress(question: CaresQuestion, server: CaresServer): void {
    question.cookieSent = question.edns && server.cookies && !question.tcp;
    const edns = question.edns
      ? { size: this.#traits.ednsSize, cookie: question.cookieSent }
      : null;
    const again = question.tries > 0 ? ' Retried, because the previous attempt failed.' : '';
    question.query = { ...question.query, edns, why: `${question.why}${again}` };
  }

  #connectionFor(server: CaresServer, tcp: boolean): Connection | null {
    const known = this.#connections.find((one) => one.server === server && one.tcp === tcp);
    const spoilt = this.#traits.newSocket === 'failure' && server.failures > 0;
    if (known !== undefined && (tcp || !(known.retired || spoilt))) return known;
    const connection: Connection = {
      server,
      tcp,
      socket: null,
      questions: new Set(),
      waiting: [],
      retired: false,
    };
    if (!tcp) {
      const socket = this.#context.network.udp();
      if (socket.connect(server.address) !== null) return null;
      connection.socket = socket;
      socket.watch(() => this.#read(connection));
    } else this.#connect(connection);
    this.#connections.unshift(connection);
    return connection;
  }

  #connect(connection: Connection): void {
    const { server } = connection;
    void this.#context.network.tcp(server.address, Infinity).then((socket) => {
      if (typeof socket === 'string') return this.#break(connection, 'ECONNREFUSED');
      connection.socket = socket;
      socket.watch(() => this.#read(connection));
      for (const question of connection.waiting) {
        if (this.#open.has(question)) socket.send(question.query, server.address);
      }
    });
  }

  #read(connection: Connection): void {
    const { socket } = connection;
    if (socket === null) return;
    this.#timeouts.received();
    const { random, network } = this.#context;
    const now = network.clock.now();
    if (now !== this.#readAt) this.#together = random.integer(readingSteps) > 0;
    this.#readAt = now;
    for (let arrival = socket.take(); arrival !== null; arrival = socket.take()) {
      if (arrival.kind === 'fault') {
        // The program notices the fault in the next round of its event loop, after closing idle connections.
        this.rest();
        this.#break(connection, 'ECONNREFUSED');
        return;
      }
      this.#answer(connection, arrival);
    }
    this.#sweepLater();
  }

  #answer(connection: Connection, arrival: Arrival & { kind: 'reply' }): void {
    const { reply, exchange } = arrival;
    const { server } = connection;
    const question = [...this.#open].find(({ query }) => isReplyTo(reply, query));
    if (question === undefined) return;
    const { defersRetries } = this.#traits;
    if (question.cookieSent) server.cookies = false;
    this.#detach(question);
    const doubtful = !reply.opt || (this.#traits.doubtsEdns && question.cookieSent);
    if (reply.rcode === 'FORMERR' && question.edns && doubtful) {
      note(exchange, 'FORMERR: c-ares retries without EDNS.');
      question.edns = false;
      return this.#later(defersRetries, () => this.#send(question, server));
    }
    if (reply.truncated && !connection.tcp) {
      note(exchange, 'Truncated: retried over TCP.');
      question.tcp = true;
      return this.#later(defersRetries, () => this.#send(question, null));
    }
    if (isServerError(reply) && !this.#setup.finalErrors) {
      this.#servers.blame(server);
      note(
        exchange,
        `${reply.rcode}: c-ares records the failure and retries the best server. ${cite('cares-retry')}`,
      );
      const status = statusOf(reply);
      return this.#retry(question, status, reply);
    }
    this.#servers.forgive(server);
    if (reply.rcode === 'NOERROR' || reply.rcode === 'NXDOMAIN') {
      this.#servers.answered(server, question.sentAt);
      if (this.#setup.caching && this.#traits.caches) this.#cache.put(reply);
    }
    this.#finish(question, { status: statusOf(reply), reply });
  }

  #retry(question: CaresQuestion, status: CaresStatus, reply: ClientReply | null): void {
    this.#detach(question);
    // Some releases cannot distinguish a closed port from silence.
    const known = status !== 'ECONNREFUSED' || this.#traits.tellsRefusal;
    question.failure = known ? status : (question.failure ?? 'ETIMEOUT');
    question.tries++;
    if (question.tries < this.#servers.count * this.#conf.attempts && !question.noRetries) {
      const deferred = reply !== null && this.#traits.defersRetries;
      return this.#later(deferred, () => this.#send(question, null));
    }
    if (question.noRetries) {
      this.#context.trace.step(
        `No further attempt for ${question.query.type}, because the IPv4 address has already arrived`,
      );
    }
    this.#finish(question, { status: question.failure, reply });
  }

  /** Runs a step immediately or, in releases that defer it, after the rest of a joint read. */
  #later(deferred: boolean, run: () => void): void {
    if (!(deferred && this.#together)) return run();
    this.#deferred++;
    this.#context.network.clock.after(0, () => {
      this.#deferred--;
      run();
    });
  }

  #detach(question: CaresQuestion): void {
    question.timer?.cancel();
    question.connection?.questions.delete(question);
    question.connection = null;
  }

  /** Closes a broken connection and sends its questions elsewhere. */
  #break(connection: Connection, status: CaresStatus): void {
    const { blamesFirst } = this.#traits;
    if (blamesFirst) this.#servers.blame(connection.server);
    const questions = [...connection.questions];
    this.#close(connection);
    for (const question of questions) this.#retry(question, status, null);
    if (!blamesFirst) this.#servers.blame(connection.server);
  }

  #finish(question: CaresQuestion, ended: Ended): void {
    this.#detach(question);
    if (!this.#open.delete(question)) return;
    this.#later(this.#traits.defersEnds, () => question.end(ended));
    this.#sweepLater();
  }

  /**
   * Closes connections that have no questions. First waits until all deferred steps have run and the caller has had
   * time to send the next questions.
   */
  #sweepLater(): void {
    this.#context.network.clock.after(0, () => {
      if (this.#deferred === 0) this.rest();
    });
  }

  rest(): void {
    for (const connection of [...this.#connections]) {
      if (connection.questions.size === 0) this.#close(connection);
    }
  }

  #close(connection: Connection): void {
    connection.socket?.close();
    const at = this.#connections.indexOf(connection);
    if (at >= 0) this.#connections.splice(at, 1);
  }
}
