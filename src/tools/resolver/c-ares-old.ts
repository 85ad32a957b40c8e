/**
 * The sending half of c-ares up to 1.21 (ares_process.c). It has one UDP socket per server, a timeout that doubles
 * after each round of servers, and no cache. After an error reply, it immediately queries the next server.
 */
import type { Timer } from '../../server/base/clock.ts';
import type { ModelContext } from './client.ts';
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
import { TimeoutTimer } from './c-ares-timer.ts';
import { isReplyTo, type Arrival, type QueryToSend, type Socket } from './network.ts';
import { isServerError } from './reply.ts';
import { cite } from './resolver-rules.ts';
import { note } from './trace.ts';

interface OldCaresServer {
  readonly address: string;
  udp: Socket | null;
  tcp: Socket | null;
  /** Queries that wait for the TCP connection, or null if no connection is being opened. */
  opening: OldCaresQuestion[] | null;
  /** Identifies the TCP connection, so that no query is sent on it twice. */
  generation: number;
}

interface OldCaresQuestion {
  readonly query: QueryToSend;
  readonly skip: Set<number>;
  readonly sentOn: Map<number, number>;
  server: number;
  tries: number;
  tcp: boolean;
  noRetries: boolean;
  failure: CaresStatus;
  timer: Timer | null;
  readonly end: (ended: Ended) => void;
}

/** Without EDNS, longer replies are fetched again over TCP even if they are not marked as truncated. */
const packetBytes = 512;

/** Sends like c-ares up to 1.21, as described at the top of this file. */
export class OldChannel implements CaresChannel {
  readonly #context: ModelContext;
  readonly #conf: CaresConf;
  readonly #traits: CaresTraits;
  readonly #setup: ChannelSetup;
  readonly #servers: readonly OldCaresServer[];
  readonly #open = new Set<OldCaresQuestion>();
  readonly #timeouts: TimeoutTimer;
  #turn = 0;

  constructor(context: ModelContext, conf: CaresConf, traits: CaresTraits, setup: ChannelSetup) {
    this.#context = context;
    this.#traits = traits;
    this.#conf = conf;
    this.#setup = setup;
    this.#timeouts = new TimeoutTimer(context.network.clock, setup.tickMs);
    this.#servers = conf.servers.map((address) => ({
      address,
      udp: null,
      tcp: null,
      opening: null,
      generation: 1,
    }));
  }

  query(name: string, type: string, why: string): PendingQuestion {
    const query = caresQuery(this.#context, this.#open, { name, type, why });
    const { promise: done, resolve: end } = Promise.withResolvers<Ended>();
    const question: OldCaresQuestion = {
      query,
      skip: new Set(),
      sentOn: new Map(),
      server: this.#turn,
      tries: 0,
      tcp: this.#setup.useVc && this.#conf.useVc,
      noRetries: false,
      failure: 'ECONNREFUSED',
      timer: null,
      end,
    };
    if (this.#conf.rotate) this.#turn = (this.#turn + 1) % this.#servers.length;
    this.#open.add(question);
    this.#send(question);
    return {
      done,
      stopRetrying: () => {
        question.noRetries = true;
      },
    };
  }

  #send(question: OldCaresQuestion): void {
    const server = this.#servers[question.server];
    if (server === undefined) return;
    if (question.tcp) this.#sendTcp(question, server);
    else if (!this.#sendUdp(question, server)) {
      this.#skip(question);
      this.#next(question);
      return;
    }
    const rounds = Math.trunc(question.tries / this.#servers.length);
    question.timer?.cancel();
    question.timer = this.#timeouts.after(this.#conf.timeoutMs * 2 ** rounds, () => {
      question.failure = 'ETIMEOUT';
      this.#next(question);
    });
  }

  /** @returns false if the kernel reported an error, which an earlier packet may have caused */
  #sendUdp(question: OldCaresQuestion, server: OldCaresServer): boolean {
    if (server.udp === null) {
      const socket = this.#context.network.udp();
      if (socket.connect(server.address) !== null) return false;
      server.udp = socket;
      socket.watch(() => this.#read(server, socket));
    }
    return typeof server.udp.send(question.query, server.address) !== 'string';
  }

  #sendTcp(question: OldCaresQuestion, server: OldCaresServer): void {
    question.sentOn.set(question.server, server.generation);
    if (server.tcp !== null) {
      server.tcp.send(question.query, server.address);
      return;
    }
    if (server.opening !== null) {
      server.opening.push(question);
      return;
    }
    server.opening = [question];
    void this.#context.network.tcp(server.address, Infinity).then((socket) => {
      const waiting = server.opening ?? [];
      server.opening = null;
      if (typeof socket === 'string') {
        this.#fail(server, waiting);
        return;
      }
      server.tcp = socket;
      socket.watch(() => this.#read(server, socket));
      for (const one of waiting) if (this.#open.has(one)) socket.send(one.query, server.address);
    });
  }

  #read(server: OldCaresServer, socket: Socket): void {
    this.#timeouts.received();
    for (let arrival = socket.take(); arrival !== null; arrival = socket.take()) {
      if (arrival.kind === 'reply') this.#answer(server, socket, arrival);
      else {
        const index = this.#servers.indexOf(server);
        const concerned = [...this.#open].filter((question) => question.server === index);
        this.#fail(server, concerned);
        return;
      }
    }
  }

  #answer(server: OldCaresServer, socket: Socket, arrival: Arrival & { kind: 'reply' }): void {
    const { reply, exchange } = arrival;
    const question = [...this.#open].find(({ query }) => isReplyTo(reply, query));
    if (question === undefined) return;
    if (socket.protocol === 'udp' && (reply.truncated || reply.size > packetBytes)) {
      if (question.tcp) return;
      note(
        exchange,
        reply.truncated
          ? 'Truncated: retried over TCP.'
          : 'More than 512 bytes without EDNS: retried over TCP.',
      );
      question.tcp = true;
      this.#send(question);
      return;
    }
    if (isServerError(reply) && !this.#setup.finalErrors) {
      note(
        exchange,
        `${reply.rcode}: c-ares tries the next server, or retries. ${cite('cares-retry')}`,
      );
      if (this.#traits.tellsErrors) question.failure = statusOf(reply);
      const index = this.#servers.indexOf(server);
      if (this.#servers.length > 1) question.skip.add(index);
      if (question.server === index) this.#next(question);
      return;
    }
    this.#finish(question, { status: statusOf(reply), reply });
  }

  /** Moves questions from a server with broken sockets to the next one. */
  #fail(server: OldCaresServer, questions: readonly OldCaresQuestion[]): void {
    this.#closeServer(server);
    for (const question of questions) {
      this.#skip(question);
      this.#next(question);
    }
  }

  #skip(question: OldCaresQuestion): void {
    if (this.#servers.length > 1) question.skip.add(question.server);
  }

  #next(question: OldCaresQuestion): void {
    const count = this.#servers.length;
    question.timer?.cancel();
    while (++question.tries < count * this.#conf.attempts && !question.noRetries) {
      question.server = (question.server + 1) % count;
      const generation = this.#servers[question.server]?.generation;
      const repeated = question.tcp && question.sentOn.get(question.server) === generation;
      if (!question.skip.has(question.server) && !repeated) {
        this.#send(question);
        return;
      }
    }
    this.#finish(question, { status: question.failure, reply: null });
  }

  #finish(question: OldCaresQuestion, ended: Ended): void {
    question.timer?.cancel();
    if (!this.#open.delete(question)) return;
    question.end(ended);
  }

  rest(): void {
    if (this.#open.size === 0) for (const server of this.#servers) this.#closeServer(server);
  }

  #closeServer(server: OldCaresServer): void {
    server.udp?.close();
    server.udp = null;
    if (server.tcp !== null || server.opening !== null) server.generation++;
    server.tcp?.close();
    server.tcp = null;
  }
}
