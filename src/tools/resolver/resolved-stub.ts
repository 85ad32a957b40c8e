/**
 * systemd-resolved's stub (127.0.0.53) between a glibc program and the servers. The program queries the stub by glibc's
 * rules. The stub queries one upstream at a time, using a new socket for each question, and caches replies. It answers
 * localhost, the machine's name and single labels itself. This is based on systemd's documentation and source (252)
 * rather than on measurements. Its fallback to plain DNS after failures is not modelled.
 */
import type { Clock } from '../../server/base/clock.ts';
import { ReceivingSocket } from './receiving-socket.ts';
import { newId, soleClient, type ClientLine, type Session, type ModelContext } from './client.ts';
import { GlibcSession } from './glibc.ts';
import { readGlibcConf } from './glibc-conf.ts';
import { glibcReleases } from './glibc-releases.ts';
import { entriesFor, readHosts } from './hosts.ts';
import { familyOf, myHostname } from './myhostname.ts';
import type { Fault, ClientNetwork, QueryToSend, Socket, SentQuery } from './network.ts';
import {
  optBytes,
  questionBytes,
  recordBytes,
  type ClientReply,
  type ReplyRecord,
} from './reply.ts';

const newestGlibc = glibcReleases.pick(null).traits;
const stubAddress = '127.0.0.53';
const upstreamTimeoutMs = 5000;
const upstreamAttempts = 4;
/** The maximum time for which positive and negative answers are cached, in seconds. */
const longestTtl = 7200;

export const resolved: ClientLine = soleClient('resolved', {
  summary: 'getaddrinfo in glibc behind the systemd-resolved stub (127.0.0.53)',
  anyOrder: false,
  conf: (settings) => readGlibcConf(settings, newestGlibc),
  open(context): Session {
    const { search, ndots } = readGlibcConf(context.settings, newestGlibc);
    const lines = [`nameserver ${stubAddress}`, `options edns0 trust-ad ndots:${ndots}`];
    if (search.length > 0) lines.push(`search ${search.join(' ')}`);
    const settings = { ...context.settings, resolvConf: `${lines.join('\n')}\n` };
    context.trace.step(
      'the program sees only 127.0.0.53 in its resolv.conf; systemd-resolved queries the servers',
    );
    return new GlibcSession(
      { ...context, settings, network: new StubNetwork(context) },
      newestGlibc,
    );
  },
});

class StubNetwork implements ClientNetwork {
  readonly clock: Clock;
  readonly serverPort = 53;
  readonly #context: ModelContext;
  readonly #servers: readonly string[];
  readonly #cache = new Map<string, { readonly reply: ClientReply; readonly until: number }>();
  #current = 0;

  constructor(context: ModelContext) {
    this.clock = context.network.clock;
    this.#context = context;
    this.#servers = readGlibcConf(context.settings, newestGlibc).servers;
  }

  udp(): Socket {
    return new StubSocket(this.#context, (query) => this.#answer(query));
  }

  tcp(): Promise<Socket | Fault> {
    return Promise.resolve(new StubSocket(this.#context, (query) => this.#answer(query), 'tcp'));
  }

  /** Null if the stub got no reply and therefore sends none. */
  async #answer(query: QueryToSend): Promise<ClientReply | null> {
    const local = this.#local(query);
    if (local !== null) return local;
    const key = `${query.name.toLowerCase()} ${query.type}`;
    const kept = this.#cache.get(key);
    if (kept !== undefined && kept.until > this.clock.now()) return { ...kept.reply, id: query.id };
    const reply = await this.#upstream(query);
    if (reply === null) return null;
    const ttl = Math.min(
      longestTtl,
      reply.negativeTtl ?? longestTtl,
      ...reply.answer.map((record) => record.ttl),
    );
    if (reply.rcode === 'NOERROR' || reply.rcode === 'NXDOMAIN') {
      this.#cache.set(key, { reply, until: this.clock.now() + ttl * 1000 });
    }
    return { ...reply, id: query.id };
  }

  #local(query: QueryToSend): ClientReply | null {
    const { settings } = this.#context;
    const bare = query.name.replace(/\.$/, '');
    const family = query.type === 'A' ? 4 : query.type === 'AAAA' ? 6 : null;
    const listed = entriesFor(readHosts(settings.hosts), bare).map((entry) => entry.address);
    const own = listed.length > 0 ? listed : myHostname(bare, settings.host, [4, 6]);
    if (own !== null && family !== null) {
      return made(
        query,
        own.filter((address) => familyOf(address) === family),
        'NOERROR',
      );
    }
    // Single labels are meant for LLMNR rather than DNS (ResolveUnicastSingleLabel=no).
    return bare.includes('.') ? null : made(query, [], 'SERVFAIL');
  }

  async #upstream(query: QueryToSend): Promise<ClientReply | null> {
    const { network, random } = this.#context;
    for (let attempt = 0; attempt < upstreamAttempts; attempt++) {
      const server = this.#servers[this.#current % this.#servers.length] ?? '';
      const socket = network.udp();
      socket.connect(server, true);
      socket.send(
        {
          ...query,
          id: newId(random),
          edns: { size: 1472, cookie: false },
          why: "systemd-resolved forwards the program's question to the current server.",
          relayed: true,
        },
        server,
      );
      const arrival = await socket.wait(network.clock.now() + upstreamTimeoutMs);
      socket.close();
      if (
        arrival?.kind === 'reply' &&
        arrival.reply.rcode !== 'SERVFAIL' &&
        arrival.reply.rcode !== 'REFUSED'
      )
        return arrival.reply;
      // The next attempt uses the next server, which then becomes the current one.
      this.#current++;
      if (arrival?.kind === 'reply' && attempt + 1 >= this.#servers.length) return arrival.reply;
    }
    return null;
  }
}

function made(
  query: QueryToSend,
  addresses: readonly string[],
  rcode: 'NOERROR' | 'SERVFAIL',
): ClientReply {
  const answer: ReplyRecord[] = addresses.map((data) => ({
    name: query.name,
    type: query.type,
    ttl: 0,
    data,
  }));
  const size = answer.reduce(
    (sum, record) => sum + recordBytes(record, true),
    questionBytes(query.name) + optBytes,
  );
  return {
    id: query.id,
    name: query.name,
    type: query.type,
    rcode,
    authoritative: true,
    recursionAvailable: true,
    truncated: false,
    answer,
    negativeTtl: null,
    opt: query.edns !== null,
    size,
  };
}

/** The socket between the program and the stub. */
class StubSocket extends ReceivingSocket {
  readonly protocol;
  port = 0;
  readonly #context: ModelContext;
  readonly #ask: (query: QueryToSend) => Promise<ClientReply | null>;
  #closed = false;

  constructor(
    context: ModelContext,
    ask: (query: QueryToSend) => Promise<ClientReply | null>,
    protocol: 'udp' | 'tcp' = 'udp',
  ) {
    super(context.network.clock);
    this.protocol = protocol;
    this.#context = context;
    this.#ask = ask;
  }

  connect(): Fault | null {
    return null;
  }

  send(query: QueryToSend, server: string): SentQuery {
    const { trace } = this.#context;
    if (this.port === 0) this.port = trace.nextPort();
    const exchange = trace.begin(query, server, this.protocol, this.port);
    // The program sends its second question before the stub starts on the first.
    const later = Promise.resolve().then(() => this.#ask(query));
    void later.then((reply) => {
      if (reply === null || this.#closed) return;
      trace.answered(exchange, reply);
      this.push({ kind: 'reply', reply, server, exchange });
    });
    return exchange;
  }

  close(): void {
    this.#closed = true;
    this.clear();
  }
}
