/**
 * Tools for debugging, namely nslookup from BIND and from busybox. Neither resolves names like a libc client, so their
 * results are misleading.
 */
import {
  countDots,
  failed,
  found,
  newId,
  plainQuery,
  soleClient,
  type ClientLine,
  type LookupOutcome,
  type Request,
  type Session,
  type ModelContext,
} from './client.ts';
import { readGlibcConf } from './glibc-conf.ts';
import { usualGlibc } from './glibc-releases.ts';
import type { QueryToSend, SentQuery } from './network.ts';
import { addressesIn, type ClientReply } from './reply.ts';
import { enoughDots, fewDots, lastAsIs } from './search-reasons.ts';
import type { ResolvConf } from './resolv-conf.ts';
import { note } from './trace.ts';

export const nslookup: ClientLine = soleClient('nslookup', {
  summary: 'nslookup in BIND 9.18: A along the search list, AAAA only for the name that answered',
  anyOrder: false,
  conf: (settings) => readGlibcConf(settings, usualGlibc),
  open: (context) => new NslookupSession(context),
});

const exit1 = failed('1', null, 'exit 1');

/** nslookup's own timeout for each of three attempts, in milliseconds. */
const nslookupTimeoutMs = 5000;
const nslookupAttempts = 3;

type ToolReply = { readonly reply: ClientReply; readonly exchange: SentQuery | null };

class NslookupSession implements Session {
  readonly #context: ModelContext;
  readonly #conf: ResolvConf;

  constructor(context: ModelContext) {
    this.#context = context;
    this.#conf = readGlibcConf(context.settings, usualGlibc);
  }

  async lookup({ name, families }: Request): Promise<LookupOutcome> {
    const dots = countDots(name);
    const { ndots, search } = this.#conf;
    const searching = !name.endsWith('.') && dots < ndots;
    const names = searching ? [...search.map((domain) => `${name}.${domain}`), name] : [name];
    this.#context.trace.step('nslookup does not read the hosts file or nsswitch.conf');
    const first = families.includes(4) ? 'A' : 'AAAA';
    for (const [index, candidate] of names.entries()) {
      const why = !searching
        ? `${enoughDots(name, this.#conf)}: nslookup queries the name as written, and ignores the search list.`
        : index < search.length
          ? `${fewDots(name, this.#conf, index)}.`
          : lastAsIs(this.#conf);
      const answered = await this.#ask(candidate, first, why);
      if (answered === null) return exit1;
      const { reply, exchange } = answered;
      if (reply.rcode === 'NXDOMAIN') continue;
      if (reply.rcode !== 'NOERROR') {
        note(exchange, `nslookup stops at ${reply.rcode}; a libc would continue.`);
        return exit1;
      }
      return families.includes(6) && first === 'A'
        ? this.#second(reply)
        : found(addressesIn(reply));
    }
    return exit1;
  }

  /** Queries AAAA for the name that was answered, or for its CNAME target. */
  async #second(reply: ClientReply): Promise<LookupOutcome> {
    const target = reply.answer.findLast((record) => record.type === 'CNAME')?.data;
    const why = 'A is answered, so nslookup sends AAAA for the same name, or for its CNAME target.';
    const answered = await this.#ask(target ?? reply.name, 'AAAA', why);
    const addresses = addressesIn(reply);
    if (answered === null || answered.reply.rcode !== 'NOERROR') {
      return { ...exit1, addresses };
    }
    return found([...addresses, ...addressesIn(answered.reply)]);
  }

  /** True if TCP is used. After one truncated reply, nslookup sticks to it. */
  #stream = false;

  async #ask(name: string, type: string, why: string): Promise<ToolReply | null> {
    const { network, random } = this.#context;
    const query = plainQuery(random, { name, type, why });
    const [firstServer] = this.#conf.servers;
    if (this.#stream && firstServer !== undefined) return this.#tcp(firstServer, query);
    let failedReply: ToolReply | null = null;
    for (const server of this.#conf.servers) {
      for (let attempt = 0; attempt < nslookupAttempts; attempt++) {
        const socket = network.udp();
        socket.connect(server);
        socket.send(query, server);
        const arrival = await socket.wait(network.clock.now() + nslookupTimeoutMs);
        socket.close();
        if (arrival === null) continue;
        if (arrival.kind === 'fault') break;
        if (arrival.reply.truncated) return this.#tcp(server, query);
        if (arrival.reply.rcode !== 'SERVFAIL') return arrival;
        failedReply = arrival;
        break;
      }
    }
    return failedReply;
  }

  async #tcp(server: string, query: QueryToSend): Promise<ToolReply | null> {
    const { network } = this.#context;
    this.#stream = true;
    const until = network.clock.now() + nslookupTimeoutMs;
    const connection = await network.tcp(server, until);
    if (typeof connection === 'string') return null;
    connection.send({ ...query, id: newId(this.#context.random) }, server);
    const arrival = await connection.wait(until);
    connection.close();
    return arrival?.kind === 'reply' ? arrival : null;
  }
}

export const busybox: ClientLine = soleClient('busybox', {
  summary:
    'busybox nslookup: names with a dot as written, single labels with all search domains at once',
  anyOrder: false,
  conf: (settings) => readGlibcConf(settings, usualGlibc),
  open: (context) => new BusyboxSession(context),
});

class BusyboxSession implements Session {
  readonly #context: ModelContext;
  readonly #conf: ResolvConf;

  constructor(context: ModelContext) {
    this.#context = context;
    this.#conf = readGlibcConf(context.settings, usualGlibc);
  }

  async lookup({ name, families }: Request): Promise<LookupOutcome> {
    this.#context.trace.step("busybox's nslookup does not read the hosts file or nsswitch.conf");
    const { random, network } = this.#context;
    const { search, servers, timeoutMs, attempts } = this.#conf;
    const single = !name.includes('.') && search.length > 0;
    const names = single ? search.map((domain) => `${name}.${domain}`) : [name];
    const why = single
      ? 'A single label is tried with all search domains in one burst, never as written.'
      : 'The name has a dot, so it is tried as written for any ndots.';
    const queries = families
      .map((family) => (family === 4 ? 'A' : 'AAAA'))
      .flatMap((type) => names.map((one) => plainQuery(random, { name: one, type, why })));
    const answers = new Map<QueryToSend, ClientReply>();
    const socket = network.udp();
    const start = network.clock.now();
    const intervalMs = Math.trunc(timeoutMs / Math.max(1, attempts));
    let resends = 0;
    for (
      let sentAt = -Infinity;
      network.clock.now() - start < timeoutMs && answers.size < queries.length;
    ) {
      if (network.clock.now() - sentAt >= intervalMs) {
        for (const query of queries) {
          if (answers.has(query)) continue;
          for (const server of servers) socket.send(query, server);
        }
        sentAt = network.clock.now();
        resends = 2 * queries.length;
      }
      const arrival = await socket.wait(Math.min(sentAt + intervalMs, start + timeoutMs));
      if (arrival?.kind !== 'reply') continue;
      const query = queries.find((one) => one.id === arrival.reply.id);
      if (query === undefined || answers.has(query)) continue;
      if (arrival.reply.rcode === 'SERVFAIL' && resends > 0) {
        resends--;
        note(arrival.exchange, 'SERVFAIL: sent again at once.');
        socket.send(query, arrival.server);
        continue;
      }
      answers.set(query, arrival.reply);
    }
    socket.close();
    const addresses = queries.flatMap((query) => {
      const reply = answers.get(query);
      return reply === undefined ? [] : addressesIn(reply);
    });
    const bad = queries.some((query) => answers.get(query)?.rcode !== 'NOERROR');
    return bad ? { ...exit1, addresses } : found(addresses);
  }
}
