/**
 * How c-ares sends since 1.22 (ares_process.c): the servers sorted by their recent failures, time-outs that grow with
 * jitter, and, release by release, time-outs that follow the measured latency, EDNS with a cookie, and a cache of
 * answers, negative ones too. What is left out: the probes of failed servers (since 1.29, one query in ten, after
 * 5 s), because they are drawn by chance.
 */
import type { Timer } from '../base/clock.ts';
import { newId, type ModelContext } from './client.ts';
import {
  plainSetup,
  statusOf,
  type CaresChannel,
  type CaresStatus,
  type ChannelSetup,
  type Ended,
  type Pending,
} from './c-ares-status.ts';
import type { CaresConf } from './c-ares-conf.ts';
import type { CaresTraits } from './c-ares-releases.ts';
import { TimeoutTimer } from './c-ares-timer.ts';
import type { Arrival, Query, Socket } from './network.ts';
import { sameName, type Reply } from './reply.ts';
import { cite } from './rules.ts';
import { note } from './trace.ts';

interface Server {
  readonly address: string;
  readonly index: number;
  failures: number;
  /** When the last failure was noted. */
  failedAt: number;
  readonly connections: Connection[];
  /** null = the server has shown that it knows no cookies. */
  cookies: boolean;
  totalMs: number;
  answers: number;
}

interface Connection {
  readonly server: Server;
  readonly tcp: boolean;
  /** null while a TCP connection is being opened. */
  socket: Socket | null;
  readonly questions: Set<Question>;
  readonly waiting: Question[];
  /** No further question goes out through it; those under way stay. */
  retired: boolean;
}

interface Question {
  query: Query;
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

/** Bounds of the adaptive time-out, and how it follows the average latency. */
const shortestMs = 250;
const longestMs = 5000;
const latencyFactor = 5;
const enoughAnswers = 3;
/** The part of a repeated time-out that jitter takes off at most, and how finely it is drawn. */
const mostJitter = 0.5;
/** How finely jitter is drawn. */
export const jitterSteps = 65_537;
/** One in so many times, replies that come in the same moment are read one after the other. */
const readingSteps = 4;
/** Seconds that an answer is kept at most. */
const longestTtl = 3600;

/** How c-ares sends from 1.22 on: see the head of this file. */
export class Channel implements CaresChannel {
  readonly #context: ModelContext;
  readonly #conf: CaresConf;
  readonly #traits: CaresTraits;
  readonly #servers: Server[];
  readonly #open = new Set<Question>();
  /** When something was read last, and whether all that came in this moment was read together. */
  #readAt = -Infinity;
  #together = true;
  readonly #timeouts: TimeoutTimer;
  readonly #cache = new Map<string, { readonly reply: Reply; readonly until: number }>();
  readonly #setup: ChannelSetup;

  constructor(
    context: ModelContext,
    conf: CaresConf,
    traits: CaresTraits,
    setup: ChannelSetup = plainSetup,
  ) {
    this.#context = context;
    this.#conf = conf;
    this.#traits = traits;
    this.#setup = setup;
    this.#timeouts = new TimeoutTimer(context.network.clock, setup.tickMs);
    this.#servers = conf.servers.map((address, index) => ({
      address,
      index,
      failures: 0,
      failedAt: 0,
      connections: [],
      cookies: traits.cookies,
      totalMs: 0,
      answers: 0,
    }));
  }

  query(name: string, type: string, why: string): Pending {
    const cached = this.#cache.get(`${name.toLowerCase()} ${type}`);
    if (cached !== undefined && cached.until > this.#context.network.clock.now()) {
      this.#context.trace.step(
        `c-ares has the answer for ${name} ${type} in its cache: no query is sent`,
      );
      const { reply } = cached;
      const done = Promise.resolve({ status: statusOf(reply), reply });
      return { done, cached: true, stopRetrying: () => {} };
    }
    const taken = new Set([...this.#open].map((question) => question.query.id));
    const query: Query = {
      id: newId(this.#context.random, taken),
      name,
      type,
      edns: null,
      ad: false,
      why,
    };
    let made: Question | null = null;
    const done = new Promise<Ended>((resolve) => {
      made = {
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
        end: resolve,
      };
      this.#open.add(made);
      this.#send(made, null);
    });
    return {
      done,
      stopRetrying: () => {
        if (made !== null) made.noRetries = true;
      },
    };
  }

  /** The server with the fewest failures in a row; among equals the one that failed longest ago, or the first. */
  #best(): Server | undefined {
    const { oldestFailureFirst } = this.#traits;
    const sorted = [...this.#servers].sort(
      (one, other) =>
        one.failures - other.failures ||
        (oldestFailureFirst ? one.failedAt - other.failedAt : 0) ||
        one.index - other.index,
    );
    if (!this.#conf.rotate) return sorted[0];
    const equal = sorted.filter((server) => server.failures === sorted[0]?.failures);
    return equal[this.#context.random.integer(equal.length)];
  }

  #send(question: Question, wanted: Server | null): void {
    const server = wanted ?? this.#best();
    if (server === undefined)
      return this.#finish(question, { status: 'ECONNREFUSED', reply: null });
    const connection = this.#connectionFor(server, question.tcp);
    if (connection === null) {
      this.#blame(server);
      return this.#retry(question, 'ECONNREFUSED', null);
    }
    this.#dress(question, server);
    if (connection.socket === null) connection.waiting.push(question);
    else if (typeof connection.socket.send(question.query, server.address) === 'string') {
      if (this.#traits.breaksOnSend) this.#break(connection, 'ECONNREFUSED');
      else this.#blame(server);
      return this.#retry(question, 'ECONNREFUSED', null);
    }
    const { clock } = this.#context.network;
    question.connection = connection;
    connection.questions.add(question);
    question.sentAt = clock.now();
    question.timer?.cancel();
    const waitMs = this.#timeoutMs(question, server);
    question.timer = this.#timeouts.after(waitMs, () => {
      // Closed before, this one waits for the next round.
      if (!this.#traits.closesLast) this.rest();
      if (this.#traits.countsSilence) this.#blame(server);
      if (this.#traits.newSocket === 'timeout') connection.retired = true;
      this.#retry(question, 'ETIMEOUT', null);
      if (this.#traits.closesLast) this.#sweepLater();
    });
  }

  /** OPT with a cookie, as long as the server has not answered without one; no cookie over TCP. */
  #dress(question: Question, server: Server): void {
    question.cookieSent = question.edns && server.cookies && !question.tcp;
    const edns = question.edns
      ? { size: this.#traits.ednsSize, cookie: question.cookieSent }
      : null;
    const again = question.tries > 0 ? ' Again: the attempt before failed.' : '';
    question.query = { ...question.query, edns, why: `${question.why}${again}` };
  }

  /** Five times the average latency once it is known; doubled each time round the servers, less up to half of that. */
  #timeoutMs(question: Question, server: Server): number {
    const measured =
      this.#traits.adapts && server.answers >= enoughAnswers
        ? Math.trunc(server.totalMs / server.answers) * latencyFactor
        : 0;
    const hintMs = measured === 0 ? this.#conf.timeoutMs : measured;
    const base = this.#traits.adapts ? Math.min(longestMs, Math.max(shortestMs, hintMs)) : hintMs;
    const rounds = Math.trunc(question.tries / this.#servers.length);
    if (rounds === 0) return base;
    const grown = base * 2 ** rounds;
    const jitter = (this.#context.random.integer(jitterSteps) / (jitterSteps - 1)) * mostJitter;
    return Math.max(base, Math.trunc(grown - grown * jitter));
  }

  #connectionFor(server: Server, tcp: boolean): Connection | null {
    const known = server.connections.find((connection) => connection.tcp === tcp);
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
    server.connections.unshift(connection);
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
        // Noticed in the next round of the program's loop: connections that were idle have been closed by then.
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
    const question = [...this.#open].find(
      ({ query }) =>
        query.id === reply.id && query.type === reply.type && sameName(query.name, reply.name),
    );
    if (question === undefined) return;
    const { defersRetries } = this.#traits;
    if (question.cookieSent) server.cookies = false;
    this.#detach(question);
    const doubtful = !reply.opt || (this.#traits.doubtsEdns && question.cookieSent);
    if (reply.rcode === 'FORMERR' && question.edns && doubtful) {
      note(exchange, 'FORMERR: c-ares asks again without EDNS.');
      question.edns = false;
      return this.#later(defersRetries, () => this.#send(question, server));
    }
    if (reply.truncated && !connection.tcp) {
      note(exchange, 'Truncated: asked again over TCP.');
      question.tcp = true;
      return this.#later(defersRetries, () => this.#send(question, null));
    }
    const refused =
      reply.rcode === 'SERVFAIL' || reply.rcode === 'NOTIMP' || reply.rcode === 'REFUSED';
    if (refused && !this.#setup.finalErrors) {
      this.#blame(server);
      note(
        exchange,
        `${reply.rcode}: c-ares remembers the failure and tries the best server again. ${cite('cares-retry')}`,
      );
      const status = statusOf(reply);
      return this.#retry(question, status, reply);
    }
    server.failures = 0;
    server.failedAt = 0;
    const tookMs = Math.max(1, Math.trunc(this.#context.network.clock.now() - question.sentAt));
    if (reply.rcode === 'NOERROR' || reply.rcode === 'NXDOMAIN') {
      server.totalMs += tookMs;
      server.answers++;
      this.#keep(reply);
    }
    this.#finish(question, { status: statusOf(reply), reply });
  }

  #keep(reply: Reply): void {
    if (!this.#setup.caching || !this.#traits.caches || reply.truncated) return;
    const ttls = reply.answer.map((record) => record.ttl);
    if (reply.negativeTtl !== null) ttls.push(reply.negativeTtl);
    const ttl =
      reply.rcode === 'NXDOMAIN' ? (reply.negativeTtl ?? 0) : Math.min(longestTtl, ...ttls);
    if (ttl <= 0) return;
    const until = this.#context.network.clock.now() + ttl * 1000;
    this.#cache.set(`${reply.name.toLowerCase()} ${reply.type}`, { reply, until });
  }

  #retry(question: Question, status: CaresStatus, reply: Reply | null): void {
    this.#detach(question);
    // A closed port is one more silence to some releases.
    const known = status !== 'ECONNREFUSED' || this.#traits.tellsRefusal;
    question.failure = known ? status : (question.failure ?? 'ETIMEOUT');
    question.tries++;
    if (question.tries < this.#servers.length * this.#conf.attempts && !question.noRetries) {
      const deferred = reply !== null && this.#traits.defersRetries;
      return this.#later(deferred, () => this.#send(question, null));
    }
    if (question.noRetries) {
      this.#context.trace.step(
        `No further attempt for ${question.query.type}: the IPv4 address is there already`,
      );
    }
    this.#finish(question, { status: question.failure, reply });
  }

  /** Runs something that may have to wait for the rest of what was read together. */
  #later(deferred: boolean, run: () => void): void {
    if (deferred && this.#together) this.#context.network.clock.after(0, run);
    else run();
  }

  #detach(question: Question): void {
    question.timer?.cancel();
    question.connection?.questions.delete(question);
    question.connection = null;
  }

  #blame(server: Server): void {
    server.failures++;
    server.failedAt = this.#context.network.clock.now();
  }

  /** A broken connection: its questions are sent again elsewhere. */
  #break(connection: Connection, status: CaresStatus): void {
    const { blamesFirst } = this.#traits;
    if (blamesFirst) this.#blame(connection.server);
    const questions = [...connection.questions];
    this.#close(connection);
    for (const question of questions) this.#retry(question, status, null);
    if (!blamesFirst) this.#blame(connection.server);
  }

  #finish(question: Question, ended: Ended): void {
    this.#detach(question);
    if (!this.#open.delete(question)) return;
    this.#later(this.#traits.defersEnds, () => question.end(ended));
    this.#sweepLater();
  }

  /** Connections without questions are closed, but only after the caller had time to ask the next ones. */
  #sweepLater(): void {
    this.#context.network.clock.after(0, () => this.rest());
  }

  rest(): void {
    for (const server of this.#servers) {
      for (const connection of [...server.connections]) {
        if (connection.questions.size === 0) this.#close(connection);
      }
    }
  }

  #close(connection: Connection): void {
    connection.socket?.close();
    const { connections } = connection.server;
    const at = connections.indexOf(connection);
    if (at >= 0) connections.splice(at, 1);
  }
}
