/**
 * evdns_getaddrinfo of libevent 2.1: the two families walk the search list each for itself; requests go round robin
 * over the servers from one long-lived socket a server; when one family is done the other has 3 s; letters' case is
 * randomised (0x20), truncation is an error, and a final dot means nothing.
 */
import type { Timer } from '../base/clock.ts';
import { parseAddress } from '../base/ip.ts';
import {
  absolute,
  countDots,
  failed,
  found,
  newId,
  soleClient,
  type ClientLine,
  type Found,
  type Request,
  type Session,
  type ModelContext,
} from './client.ts';
import { readEvdnsConf } from './evdns-conf.ts';
import { dottedQuad } from './glibc-conf.ts';
import { entriesFor, readHosts } from './hosts.ts';
import { familyOf, withoutZone } from './myhostname.ts';
import type { Arrival, Query, Socket } from './network.ts';
import { addressesIn, sameName, type Reply } from './reply.ts';
import type { ResolvConf } from './resolv-conf.ts';
import { isSendable } from './search-list.ts';
import { afterAsIs, enoughDots, fewDots, lastAsIs } from './search-reasons.ts';
import { note } from './trace.ts';

/** The model of evdns_getaddrinfo. */
export const evdns: ClientLine = soleClient('evdns', {
  summary: 'evdns_getaddrinfo of libevent 2.1.12: Tor, memcached tools, many event-driven servers',
  anyOrder: false,
  conf: readEvdnsConf,
  open: (context) => new EvdnsSession(context),
});

/** How long the second family may take after the first. */
const skewMs = 3000;
const mostAddresses = 32;
/** A failed server is probed with a fixed name after this time, then three times as long, up to an hour. */
const probeMs = 10_000;
const probeName = 'google.com';
const mostTimeouts = 3;

type EvdnsError =
  | 'NXDOMAIN'
  | 'NODATA'
  | 'TRUNCATED'
  | 'SERVFAIL'
  | 'REFUSED'
  | 'NOTIMP'
  | 'FORMERR'
  | 'TIMEOUT';

interface Server {
  readonly address: string;
  socket: Socket | null;
  up: boolean;
  timeouts: number;
  probe: Timer | null;
}

interface Walk {
  readonly typed: string;
  readonly type: string;
  /** -1 = as typed first. */
  index: number;
  readonly end: (result: readonly string[] | EvdnsError) => void;
  cancelled: boolean;
}

interface Running {
  readonly walk: Walk | null;
  readonly query: Query;
  server: Server;
  sent: number;
  reissues: number;
  timer: Timer | null;
}

class EvdnsSession implements Session {
  readonly #context: ModelContext;
  readonly #conf: ResolvConf;
  readonly #servers: readonly Server[];
  readonly #running = new Set<Running>();
  #head = 0;

  constructor(context: ModelContext) {
    this.#context = context;
    this.#conf = readEvdnsConf(context.settings);
    // Each new server is put behind the first one of the ring: 1, last, …, 3, 2.
    const [first, ...others] = this.#conf.servers;
    const ring = first === undefined ? [] : [first, ...others.reverse()];
    this.#servers = ring.map((address) => ({
      address,
      socket: null,
      up: true,
      timeouts: 0,
      probe: null,
    }));
  }

  async lookup({ name, families }: Request): Promise<Found> {
    if (this.#servers.length === 0) {
      this.#context.trace.step('no name server in resolv.conf: evdns cannot be set up');
      return failure('TIMEOUT');
    }
    const literal = dottedQuad(name) ?? withoutZone(name);
    if (parseAddress(literal) !== null && families.includes(familyOf(literal))) {
      return found([literal]);
    }
    const listed = entriesFor(readHosts(this.#context.settings.hosts), name);
    if (listed.length > 0) {
      this.#context.trace.step(
        `hosts file, line ${listed[0]?.line ?? 0}: "${name}" is listed. No query is sent.`,
      );
      return found(
        listed
          .filter((entry) => families.includes(entry.family))
          .map((entry) => withoutZone(entry.address)),
      );
    }
    return new Promise((resolve) =>
      this.#both(
        name,
        families.map((family) => (family === 4 ? 'A' : 'AAAA')),
        resolve,
      ),
    );
  }

  #both(name: string, types: readonly string[], resolve: (found: Found) => void): void {
    const results = new Map<string, readonly string[] | EvdnsError>();
    const walks: Walk[] = [];
    let skew: Timer | null = null;
    let over = false;
    const finish = (result: Found): void => {
      over = true;
      skew?.cancel();
      for (const walk of walks) this.#cancel(walk);
      resolve(result);
    };
    const merged = (): Found => {
      const addresses = types.flatMap((type) => {
        const result = results.get(type);
        return Array.isArray(result) ? (result as readonly string[]) : [];
      });
      const any = [...results.values()].some((result) => typeof result !== 'string');
      return any
        ? found(addresses)
        : failure(([...results.values()].at(-1) ?? 'TIMEOUT') as EvdnsError);
    };
    for (const type of types) {
      const end = (result: readonly string[] | EvdnsError): void => {
        if (over) return;
        results.set(type, result);
        if (results.size === types.length) return finish(merged());
        skew?.cancel();
        skew = this.#context.network.clock.after(skewMs, () => {
          const late = types.filter((other) => !results.has(other)).join(' and ');
          this.#context.trace.step(
            `evdns no longer waits for ${late}: 3 s after the other family it reports what it has`,
          );
          finish(merged());
        });
      };
      const enough = countDots(name) >= this.#conf.ndots || this.#conf.search.length === 0;
      const walk: Walk = { typed: name, type, index: enough ? -1 : 0, end, cancelled: false };
      walks.push(walk);
    }
    for (const walk of walks) this.#ask(walk);
  }

  #cancel(walk: Walk): void {
    walk.cancelled = true;
    for (const running of [...this.#running]) if (running.walk === walk) this.#drop(running);
  }

  /** Sends the walk's present name; `error` is what the name before it came to. */
  #ask(walk: Walk, error: EvdnsError = 'TIMEOUT'): void {
    const { search, ndots } = this.#conf;
    const dots = countDots(walk.typed);
    const searching = walk.index >= 0 && walk.index < search.length;
    const joined = walk.typed.endsWith('.') ? walk.typed : `${walk.typed}.`;
    const name = searching ? `${joined}${search[walk.index] ?? ''}` : walk.typed;
    const why = searching
      ? dots >= ndots
        ? `${afterAsIs(this.#conf, walk.index)} Each family walks by itself.`
        : `${fewDots(walk.typed, this.#conf, walk.index)}. Each family walks by itself.`
      : walk.index < 0
        ? `${enoughDots(walk.typed, this.#conf)}: the name is asked as it is first.`
        : lastAsIs(this.#conf);
    if (!isSendable(name)) {
      this.#context.trace.step(`"${name}" is too long for DNS: evdns gives up on ${walk.type}`);
      walk.end(error);
      return;
    }
    this.#start(walk, name, walk.type, why);
  }

  #start(walk: Walk | null, name: string, type: string, why: string): Running {
    const { random } = this.#context;
    const query: Query = {
      id: newId(random),
      name: absolute(randomCase(name, () => random.integer(2) === 1)),
      type,
      edns: null,
      ad: false,
      why,
    };
    const running: Running = {
      walk,
      query,
      server: this.#pick(),
      sent: 0,
      reissues: 0,
      timer: null,
    };
    this.#running.add(running);
    this.#transmit(running);
    return running;
  }

  /** Round robin over the servers that are thought to be up, or over all if none is. */
  #pick(): Server {
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

  #at(index: number): Server {
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

  #read(server: Server, socket: Socket): void {
    for (let arrival = socket.take(); arrival !== null; arrival = socket.take()) {
      const foreign = arrival.server !== server.address;
      if (arrival.kind === 'reply' && !foreign) this.#answer(server, arrival);
    }
  }

  #answer(server: Server, { reply, exchange }: Arrival & { kind: 'reply' }): void {
    const running = [...this.#running].find(
      (one) =>
        one.query.id === reply.id &&
        one.query.type === reply.type &&
        sameName(one.query.name, reply.name),
    );
    if (running === undefined) return;
    const addresses =
      reply.truncated || reply.rcode !== 'NOERROR'
        ? []
        : addressesIn(reply).slice(0, mostAddresses);
    if (addresses.length > 0) {
      this.#recovered(server);
      this.#drop(running);
      running.walk?.end(addresses);
      return;
    }
    const error = errorOf(reply);
    if (error === 'SERVFAIL') {
      note(
        exchange,
        'SERVFAIL: evdns acts as if the query had timed out: it sends it again, three times in all.',
      );
      this.#timedOut(running);
      return;
    }
    if ((error === 'REFUSED' || error === 'NOTIMP') && running.reissues < 1) {
      note(exchange, `${error}: evdns takes the server for bad.`);
      this.#failed(server);
      const next = this.#pick();
      if (next !== running.server) {
        running.server = next;
        running.reissues++;
        running.sent = 0;
        note(exchange, 'The question waits for its time-out before it goes to the next server.');
        return;
      }
    } else if (error !== 'REFUSED' && error !== 'NOTIMP') this.#recovered(server);
    if (error === 'TRUNCATED') note(exchange, 'Truncated: an error to evdns, it has no TCP.');
    this.#next(running, error);
  }

  /** The next name of the walk, or its end. */
  #next(running: Running, error: EvdnsError): void {
    const { walk } = running;
    this.#drop(running);
    if (walk === null || walk.cancelled) return;
    const { search, ndots } = this.#conf;
    if (search.length === 0 || walk.index >= search.length) return walk.end(error);
    walk.index++;
    // Behind the last domain the name comes as typed, unless it was first.
    if (walk.index === search.length && countDots(walk.typed) >= ndots) return walk.end(error);
    this.#ask(walk, error);
  }

  #finish(running: Running, error: EvdnsError): void {
    this.#drop(running);
    running.walk?.end(error);
  }

  #drop(running: Running): void {
    running.timer?.cancel();
    this.#running.delete(running);
  }

  #failed(server: Server): void {
    if (!server.up) return;
    server.up = false;
    this.#probeLater(server, probeMs);
    if (!this.#servers.some((other) => other.up)) return;
    // What waits to be sent to it is moved to another server.
    for (const running of this.#running) {
      if (running.sent === 0 && running.server === server) running.server = this.#pick();
    }
  }

  #probeLater(server: Server, delayMs: number): void {
    server.probe?.cancel();
    server.probe = this.#context.network.clock.after(delayMs, () => {
      const running = this.#start(
        null,
        probeName,
        'A',
        'evdns probes a server that had failed, always with this name.',
      );
      running.server = server;
      this.#probeLater(server, Math.min(3_600_000, delayMs * 3));
    });
  }

  #recovered(server: Server): void {
    server.probe?.cancel();
    server.probe = null;
    server.up = true;
  }
}

function errorOf(reply: Reply): EvdnsError {
  if (reply.truncated) return 'TRUNCATED';
  if (reply.rcode === 'NOERROR') return 'NODATA';
  return reply.rcode === 'NXDOMAIN' ||
    reply.rcode === 'SERVFAIL' ||
    reply.rcode === 'REFUSED' ||
    reply.rcode === 'NOTIMP'
    ? reply.rcode
    : 'FORMERR';
}

function failure(error: EvdnsError): Found {
  if (error === 'NXDOMAIN')
    return failed('EVUTIL_EAI_NONAME', -2, 'nodename nor servname provided, or not known');
  return failed('EVUTIL_EAI_FAIL', -4, 'non-recoverable failure in name resolution');
}

function randomCase(name: string, upper: () => boolean): string {
  return name.replace(/[a-z]/gi, (letter) =>
    upper() ? letter.toUpperCase() : letter.toLowerCase(),
  );
}
