/**
 * Tools for debugging, namely nslookup from BIND and from busybox. Neither resolves names like a libc client, so their
 * results are misleading.
 */
import {
  absolute,
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
  type Settings,
  type ModelContext,
} from './client.ts';
import { readGlibcConf } from './glibc-conf.ts';
import { usualGlibc } from './glibc-releases.ts';
import type { QueryToSend, SentQuery, Socket } from './network.ts';
import { addressesIn, type ClientReply } from './reply.ts';
import { hasValidLabels, isSendable } from './search-list.ts';
import { enoughDots, fewDots, lastAsIs } from './search-reasons.ts';
import type { ResolvConf } from './resolv-conf.ts';
import { note } from './trace.ts';

/** Both programs read resolv.conf themselves, and ignore LOCALDOMAIN and RES_OPTIONS. */
function readConf(settings: Settings): ResolvConf {
  return readGlibcConf({ ...settings, env: {} }, usualGlibc);
}

export const nslookup: ClientLine = soleClient('nslookup', {
  summary: 'nslookup in BIND 9.18: A along the search list, AAAA only for the name that answered',
  anyOrder: false,
  conf: readConf,
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
    this.#conf = readConf(context.settings);
  }

  async lookup({ name, families }: Request): Promise<LookupOutcome> {
    const dots = countDots(name);
    const { ndots, search } = this.#conf;
    const searching = !name.endsWith('.') && dots < ndots;
    const { trace } = this.#context;
    trace.step('nslookup does not read the hosts file or nsswitch.conf');
    const first = families.includes(4) ? 'A' : 'AAAA';
    for (const [index, domain] of [...(searching ? search : []), '.'].entries()) {
      const malformed = [name, domain].find((one) => one !== '.' && !hasValidLabels(one));
      if (malformed !== undefined) {
        trace.step(`"${malformed}" has a label that is empty or too long, so nslookup exits`);
        return exit1;
      }
      const candidate = domain === '.' ? absolute(name) : `${name}.${domain}`;
      if (!isSendable(candidate)) {
        trace.step(`"${candidate}" is too long, so nslookup skips it`);
        continue;
      }
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
  conf: readConf,
  open: (context) => new BusyboxSession(context),
});

class BusyboxSession implements Session {
  readonly #context: ModelContext;
  readonly #conf: ResolvConf;

  constructor(context: ModelContext) {
    this.#context = context;
    this.#conf = readConf(context.settings);
  }

  async lookup({ name, families }: Request): Promise<LookupOutcome> {
    this.#context.trace.step("busybox's nslookup does not read the hosts file or nsswitch.conf");
    const { random } = this.#context;
    const { search, servers } = this.#conf;
    // busybox ignores a search list of only the root ("search .").
    const single = !name.includes('.') && search.some((domain) => domain !== '.');
    const names = single ? search.map((domain) => `${name}.${domain}`) : [name];
    const why = single
      ? 'A single label is tried with all search domains in one burst, never as written.'
      : name.includes('.')
        ? 'The name has a dot, so it is tried as written for any ndots.'
        : 'There is no search list, so the name is tried as written.';
    const queries = families
      .map((family) => (family === 4 ? 'A' : 'AAAA'))
      .flatMap((type) => names.map((one) => plainQuery(random, { name: one, type, why })));
    const answers = new Map<QueryToSend, ClientReply>();
    for (const server of servers) {
      await this.#ask(server, queries, answers);
      if (answers.size > 0) break;
    }
    const addresses = queries.flatMap((query) => {
      const reply = answers.get(query);
      return reply === undefined ? [] : addressesIn(reply);
    });
    const bad = queries.some((query) => answers.get(query)?.rcode !== 'NOERROR');
    return bad ? { ...exit1, addresses } : found(addresses);
  }

  /** Queries a server until all queries are answered, the timeout expires, or one of them cannot be sent. */
  async #ask(
    server: string,
    queries: readonly QueryToSend[],
    answers: Map<QueryToSend, ClientReply>,
  ): Promise<void> {
    const { network } = this.#context;
    const { timeoutMs, attempts } = this.#conf;
    const intervalMs = Math.trunc(timeoutMs / Math.max(1, attempts));
    const socket = network.udp();
    const end = network.clock.now() + timeoutMs;
    let resends = 0;
    let sentAt = -Infinity;
    socket.connect(server);
    while (network.clock.now() < end && answers.size < queries.length) {
      if (network.clock.now() - sentAt >= intervalMs) {
        const unanswered = queries.filter((query) => !answers.has(query));
        if (!this.#send(unanswered, socket, server)) break;
        sentAt = network.clock.now();
        resends = 2 * queries.length;
      }
      const arrival = await socket.wait(Math.min(sentAt + intervalMs, end));
      if (arrival?.kind === 'fault') break;
      const query = queries.find((one) => one.id === arrival?.reply.id);
      if (arrival === null || query === undefined || answers.has(query)) continue;
      if (arrival.reply.rcode === 'SERVFAIL' && resends > 0) {
        resends--;
        note(arrival.exchange, 'SERVFAIL: sent again at once.');
        socket.send(query, arrival.server);
        continue;
      }
      answers.set(query, arrival.reply);
    }
    socket.close();
  }

  /** Returns false at the first query that cannot be sent. The others are then not sent. */
  #send(queries: readonly QueryToSend[], socket: Socket, server: string): boolean {
    return queries.every((query) => {
      if (isSendable(query.name)) return typeof socket.send(query, server) !== 'string';
      this.#context.trace.step(
        `"${query.name}" cannot be sent, because it is too long or has an empty label, so busybox gives up on ${server}`,
      );
      return false;
    });
  }
}
