/**
 * The sending half of evdns (evdns.c in libevent 2.1). It rotates through the servers that are considered up, with one
 * long-lived socket for each, and randomises the case of letters (0x20). A failed server is probed until it answers
 * again.
 */
import type { Timer } from '../../server/base/clock.ts';
import { absolute, newId, type ModelContext } from './client.ts';
import { isReplyTo, type Arrival, type QueryToSend, type Socket } from './network.ts';
import { addressesIn, type ClientReply } from './reply.ts';
import type { ResolvConf } from './resolv-conf.ts';
import { note } from './trace.ts';

export type EvdnsError =
  | 'NXDOMAIN'
  | 'NODATA'
  | 'TRUNCATED'
  | 'SERVFAIL'
  | 'REFUSED'
  | 'NOTIMP'
  | 'FORMERR'
  | 'TIMEOUT';

/** At least one address, or the reason why there is none. */
export type EvdnsResult = readonly string[] | EvdnsError;

/** `why` is one sentence. */
export type EvdnsQuestion = Pick<QueryToSend, 'name' | 'type' | 'why'>;

const mostAddresses = 32;
/**
 * In milliseconds. After this time, a failed server is probed with a fixed name. Each further delay is three times as
 * long, up to an hour.
 */
const probeMs = 10_000;
const probeName = 'google.com';
const mostTimeouts = 3;

interface EvdnsServer {
  readonly address: string;
  socket: Socket | null;
  up: boolean;
  timeouts: number;
  probe: Timer | null;
}

interface Running {
  readonly query: QueryToSend;
  readonly end: (result: EvdnsResult) => void;
  server: EvdnsServer;
  sent: number;
  reissues: number;
  timer: Timer | null;
}

export class EvdnsServers {
  readonly #context: ModelContext;
  readonly #conf: ResolvConf;
  readonly #servers: readonly EvdnsServer[];
  readonly #running = new Set<Running>();
  #head = 0;

  constructor(context: ModelContext, conf: ResolvConf) {
    this.#context = context;
    this.#conf = conf;
    // evdns inserts each new server after the first one in its ring, so the order is 1, last, …, 3, 2.
    const [first, ...others] = conf.servers;
    const ring = first === undefined ? [] : [first, ...others.reverse()];
    this.#servers = ring.map((address) => ({
      address,
      socket: null,
      up: true,
      timeouts: 0,
      probe: null,
    }));
  }

  get count(): number {
    return this.#servers.length;
  }

  /**
   * Sends a question and retries it until there is a result.
   * @param end called once, unless the question was cancelled
   * @returns a function that cancels the question
   */
  ask(question: EvdnsQuestion, end: (result: EvdnsResult) => void): () => void {
    const running = this.#start(question, end);
    return () => this.#drop(running);
  }

  #start({ name, type, why }: EvdnsQuestion, end: (result: EvdnsResult) => void): Running {
    const { random } = this.#context;
    const query: QueryToSend = {
      id: newId(random),
      name: absolute(randomCase(name, () => random.integer(2) === 1)),
      type,
      edns: null,
      ad: false,
      why,
    };
    const running: Running = {
      query,
      end,
      server: this.#pick(),
      sent: 0,
      reissues: 0,
      timer: null,
    };
    this.#running.add(running);
    this.#transmit(running);
    return running;
  }

  /** Picks the next server in rotation among those considered up or, if there are none, among all. */
  #pick(): EvdnsServer {
    const count = this.#servers.length;
    if (!this.#servers.some((server) => server.up)) {
      this.#head = (this.#head + 1) % count;
      return this.#at(this.#head);
    }
    while (!this.#at(this.#head).up) this.#head = (this.#head + 1) % count;
    const picked = this.#at(this.#head);
    this.#head = (this.#head + 1) % count;
    return picked;
  }

  #at(index: number): EvdnsServer {
    const server = this.#servers[index];
    if (server === undefined) throw new RangeError('no such server');
    return server;
  }

  #transmit(running: Running): void {
    const { server } = running;
    if (server.socket === null) {
      const socket = this.#context.network.udp();
      server.socket = socket;
      socket.watch(() => this.#read(server, socket));
    }
    if (typeof server.socket.send(running.query, server.address) === 'string') this.#failed(server);
    running.sent++;
    running.timer?.cancel();
    running.timer = this.#context.network.clock.after(this.#conf.timeoutMs, () =>
      this.#timedOut(running),
    );
  }

  #timedOut(running: Running): void {
    if (running.sent >= this.#conf.attempts) {
      const { server } = running;
      this.#finish(running, 'TIMEOUT');
      this.#failed(server);
      return;
    }
    running.server = this.#pick();
    this.#transmit(running);
    running.server.timeouts++;
    if (running.server.timeouts > mostTimeouts) {
      running.server.timeouts = 0;
      this.#failed(running.server);
    }
  }

  #read(server: EvdnsServer, socket: Socket): void {
    for (let arrival = socket.take(); arrival !== null; arrival = socket.take()) {
      const foreign = arrival.server !== server.address;
      if (arrival.kind === 'reply' && !foreign) this.#answer(server, arrival);
    }
  }

  #answer(server: EvdnsServer, { reply, exchange }: Arrival & { kind: 'reply' }): void {
    const running = [...this.#running].find(({ query }) => isReplyTo(reply, query));
    if (running === undefined) return;
    const addresses =
      reply.truncated || reply.rcode !== 'NOERROR'
        ? []
        : addressesIn(reply).slice(0, mostAddresses);
    if (addresses.length > 0) {
      this.#recovered(server);
      this.#finish(running, addresses);
      return;
    }
    const error = errorOf(reply);
    if (error === 'SERVFAIL') {
      note(
        exchange,
        'SERVFAIL: evdns treats this as a timeout and sends the query up to three times.',
      );
      this.#timedOut(running);
      return;
    }
    if ((error === 'REFUSED' || error === 'NOTIMP') && running.reissues < 1) {
      note(exchange, `${error}: evdns marks the server as failed.`);
      this.#failed(server);
      const next = this.#pick();
      if (next !== running.server) {
        running.server = next;
        running.reissues++;
        running.sent = 0;
        note(exchange, 'The query waits for its timeout before it goes to the next server.');
        return;
      }
    } else if (error !== 'REFUSED' && error !== 'NOTIMP') this.#recovered(server);
    if (error === 'TRUNCATED')
      note(exchange, 'Truncated, which is an error in evdns because it does not support TCP.');
    this.#finish(running, error);
  }

  #finish(running: Running, result: EvdnsResult): void {
    this.#drop(running);
    running.end(result);
  }

  #drop(running: Running): void {
    running.timer?.cancel();
    this.#running.delete(running);
  }

  #failed(server: EvdnsServer): void {
    if (!server.up) return;
    server.up = false;
    this.#probeLater(server, probeMs);
    if (!this.#servers.some((other) => other.up)) return;
    // Move this server's questions to another one.
    for (const running of this.#running) {
      if (running.sent === 0 && running.server === server) running.server = this.#pick();
    }
  }

  #probeLater(server: EvdnsServer, delayMs: number): void {
    server.probe?.cancel();
    server.probe = this.#context.network.clock.after(delayMs, () => {
      const why = 'evdns probes a server that had failed, always with this name.';
      const running = this.#start({ name: probeName, type: 'A', why }, () => undefined);
      running.server = server;
      this.#probeLater(server, Math.min(3_600_000, delayMs * 3));
    });
  }

  #recovered(server: EvdnsServer): void {
    server.probe?.cancel();
    server.probe = null;
    server.up = true;
  }
}

function errorOf(reply: ClientReply): EvdnsError {
  if (reply.truncated) return 'TRUNCATED';
  if (reply.rcode === 'NOERROR') return 'NODATA';
  return reply.rcode === 'NXDOMAIN' ||
    reply.rcode === 'SERVFAIL' ||
    reply.rcode === 'REFUSED' ||
    reply.rcode === 'NOTIMP'
    ? reply.rcode
    : 'FORMERR';
}

function randomCase(name: string, upper: () => boolean): string {
  return name.replace(/[a-z]/gi, (letter) =>
    upper() ? letter.toUpperCase() : letter.toLowerCase(),
  );
}
