/**
 * Go's own resolver (net/dnsclient_unix.go). A and AAAA are sent at the same time, and each attempt uses a new socket.
 * Each family walks the whole list of names independently, and addresses from one family are enough.
 */
import { parseAddress, printHostPort } from '../../server/base/ip.ts';
import {
  absolute,
  found,
  newId,
  clientLine,
  type AddressFamily,
  type LookupOutcome,
  type Request,
  type Session,
  type ModelContext,
  type ClientLine,
} from './client.ts';
import { builtWithCgo, chooseGoResolver, type GoOrder } from './go-order.ts';
import { readGoConf } from './go-conf.ts';
import {
  failure,
  fromLibc,
  goError,
  noSuchHost,
  socketError,
  unsuitable,
  type GoError,
} from './go-errors.ts';
import { goReleases, type GoTraits } from './go-releases.ts';
import { GlibcSession } from './glibc.ts';
import { usualGlibc } from './glibc-releases.ts';
import { readHosts } from './hosts.ts';
import { familyOf, withoutZone } from './myhostname.ts';
import type { Arrival, QueryToSend, Socket, SentQuery } from './network.ts';
import { hasCname, questionBytes, recordBytes, sameName, type ClientReply } from './reply.ts';
import type { ResolvConf } from './resolv-conf.ts';
import { cite } from './resolver-rules.ts';
import { isSendable } from './search-list.ts';
import { candidates, rootedReason, type SearchCandidate } from './search-reasons.ts';
import { note } from './trace.ts';

/** Go's receive buffer, and the UDP size that it advertises in EDNS. */
const maxPacket = 1232;

type Tried =
  | { readonly reply: ClientReply; readonly exchange: SentQuery | null }
  | { readonly error: GoError };

export const go: ClientLine = clientLine('go', goReleases, (version, traits) => ({
  summary: `net.Resolver in Go ${version}: its own resolver, or libc's if a cgo build prefers that`,
  anyOrder: true,
  conf: (settings) => readGoConf(settings, traits),
  open: (context) => new GoSession(context, version, traits),
}));

class GoSession implements Session {
  readonly #context: ModelContext;
  readonly #version: string;
  readonly #traits: GoTraits;
  readonly #conf: ResolvConf;
  #turn = 0;
  #libc: GlibcSession | null = null;

  constructor(context: ModelContext, version: string, traits: GoTraits) {
    this.#context = context;
    this.#version = version;
    this.#traits = traits;
    this.#conf = readGoConf(context.settings, traits);
  }

  async lookup(request: Request): Promise<LookupOutcome> {
    const { name, families } = request;
    const { trace, settings } = this.#context;
    const literal = unmapped(name);
    if (parseAddress(literal) !== null) {
      return families.includes(familyOf(literal)) ? found([literal]) : unsuitable(name);
    }
    if (name === '') return failure(noSuchHost);
    const choice = chooseGoResolver(name, settings, this.#conf, this.#traits);
    for (const line of choice.debug) trace.debug(line);
    if (builtWithCgo(settings) || choice.order === 'cgo') {
      trace.step(
        `Go ${this.#version} uses ${choice.order === 'cgo' ? "libc's getaddrinfo" : 'its own resolver'}: ${choice.reason}`,
      );
    }
    if (choice.order !== 'cgo') return this.#own(name, families, choice.order);
    this.#libc ??= new GlibcSession(this.#context, usualGlibc);
    const result = await this.#libc.lookupMapped({ name, families, addrConfig: false });
    if (result.failure !== null) return fromLibc(result, this.#traits);
    return result.addresses.length === 0 ? unsuitable(name) : found(result.addresses.map(unmapped));
  }

  async #own(
    name: string,
    families: readonly AddressFamily[],
    order: GoOrder,
  ): Promise<LookupOutcome> {
    if (order === 'files,dns' || order === 'files') {
      const listed = this.#files(name, families);
      if (listed !== null) return listed;
      if (order === 'files')
        return this.#traits.filesNotFound ? failure(noSuchHost) : unsuitable(name);
    }
    if (!isDomainName(name)) {
      this.#context.trace.step(`"${name}" is not a domain name, so Go sends nothing`);
      return failure(noSuchHost);
    }
    const result = await this.#walk(name, families);
    if (result.failure !== null && order === 'dns,files')
      return this.#files(name, families) ?? result;
    return result;
  }

  #files(name: string, families: readonly AddressFamily[]): LookupOutcome | null {
    // Only names with a dot are made absolute, so `localhost.` does not match `localhost`.
    const key = (text: string): string =>
      (text.includes('.') ? absolute(text) : text).toLowerCase();
    const entries = readHosts(this.#context.settings.hosts)
      .filter((entry) => entry.names.some((other) => key(other) === key(name)))
      .map((entry) => ({ ...entry, address: unmapped(entry.address) }));
    if (entries.length === 0) {
      this.#context.trace.step(`hosts file: no entry for "${name}"`);
      return null;
    }
    this.#context.trace.step(
      `hosts file, line ${entries[0]?.line ?? 0}: "${name}" is listed. No query is sent. ${cite('hosts-file')}`,
    );
    const fitting = entries.filter((entry) => families.includes(familyOf(entry.address)));
    if (fitting.length > 0) return found(fitting.map((entry) => entry.address));
    return unsuitable(name);
  }

  async #walk(typed: string, families: readonly AddressFamily[]): Promise<LookupOutcome> {
    const types = families.map((family) => (family === 4 ? 'A' : 'AAAA'));
    const names = this.#names(typed);
    if (names.length === 0) return unsuitable(typed);
    let lastError: GoError | null = null;
    const addresses: string[] = [];
    const { trace } = this.#context;
    for (const { name, why } of names) {
      const since = trace.exchanges.length;
      const results = this.#conf.singleRequest
        ? await inTurn(types, (type) => this.#one(name, type, why))
        : await together(
            this.#context.startsInOrder === true ? types : types.toReversed(),
            (type) => this.#one(name, type, why),
          );
      for (const result of results) {
        if ('error' in result) {
          // The error for the name as typed takes precedence.
          if (lastError === null || name === `${typed}.`) lastError = result.error;
          continue;
        }
        for (const record of result.reply.answer) {
          if (record.type === 'A' || record.type === 'AAAA') addresses.push(record.data);
        }
      }
      if (addresses.length > 0) {
        trace.conclude(since, `An address was found, so the walk ends here. ${cite('go-stop')}`);
        return found(addresses);
      }
      trace.conclude(
        since,
        `No address was found, so the next name is tried, if there is one. ${cite('go-next')}`,
      );
    }
    return failure(lastError ?? noSuchHost);
  }

  #names(typed: string): readonly SearchCandidate[] {
    // Depending on the release, either a typed .onion name is rejected outright or only candidates that end in .onion
    // are skipped.
    const onion = (name: string): boolean => /\.onion\.?$/i.test(name);
    const { onionByCandidate } = this.#traits;
    if (onion(typed) && (!onionByCandidate || typed.endsWith('.'))) return [];
    if (typed.endsWith('.')) {
      // Go 1.19 rejects an absolute name of 254 characters as too long.
      if (typed.length === 254 && !this.#traits.longNeedsDot) return [];
      return [{ name: typed, why: rootedReason }];
    }
    const asIs = `${typed}.`;
    const joined = (domain: string): string => asIs + (domain === '.' ? '.' : domain);
    return candidates(typed, this.#conf, joined, asIs).filter(({ name }) => {
      if (name === asIs) return !onion(typed);
      if (onion(name) && onionByCandidate) return false;
      if (name.length <= 254) return true;
      this.#context.trace.step(`"${name}" is too long, so Go skips this search domain`);
      return false;
    });
  }

  /** tryOneName: attempts × servers. After an error reply, the next server is queried immediately. */
  async #one(name: string, type: string, why: string): Promise<Tried> {
    const { servers, attempts, rotate } = this.#conf;
    const offset = rotate ? this.#turn++ : 0;
    let lastError: GoError = noSuchHost;
    if (!isSendable(name)) {
      this.#context.trace.step(
        `"${name}" has a label that is empty or too long, so Go cannot send it`,
      );
      return { error: goError('cannot marshal DNS message') };
    }
    const again = `${why} Retried from a new socket, because the previous attempt failed.`;
    let reason = why;
    for (let attempt = 0; attempt < attempts; attempt++) {
      for (let shift = 0; shift < servers.length; shift++) {
        const server = servers[(shift + offset) % servers.length] ?? '';
        const result = await this.#exchange(server, name, type, reason);
        if ('error' in result) {
          lastError = result.error;
          reason = again;
          continue;
        }
        const { reply, exchange } = result;
        if (reply.rcode === 'NXDOMAIN') return { error: noSuchHost };
        const error = this.#headerError(reply);
        if (error !== null) {
          note(
            exchange,
            `${error.text}: Go tries the next server, or retries. ${cite('go-retry')}`,
          );
          lastError = error;
          reason = again;
          continue;
        }
        if (!reply.answer.some((record) => record.type === type)) {
          if (hasCname(reply))
            note(exchange, 'A CNAME without an address counts as "no such host".');
          return { error: noSuchHost };
        }
        return result;
      }
    }
    return { error: lastError };
  }

  #headerError(reply: ClientReply): GoError | null {
    const lame =
      reply.rcode === 'NOERROR' &&
      !reply.authoritative &&
      !reply.recursionAvailable &&
      reply.answer.length === 0 &&
      !(this.#traits.additionalCounts && reply.opt);
    if (lame) return goError('lame referral');
    if (reply.rcode === 'NOERROR') return null;
    return goError('server misbehaving', reply.rcode === 'SERVFAIL');
  }

  /** Sends one question to one server over UDP, and again over TCP if the reply is truncated. */
  async #exchange(server: string, name: string, type: string, why: string): Promise<Tried> {
    const { network, random, settings } = this.#context;
    const where = printHostPort(server, network.serverPort);
    const noEdns =
      this.#traits.ednsSetting && /(^|,)netedns0=0(,|$)/.test(settings.env['GODEBUG'] ?? '');
    const query: QueryToSend = {
      id: newId(random),
      name: absolute(name),
      type,
      edns: noEdns ? null : { size: maxPacket, cookie: false },
      ad: this.#conf.trustAd,
      why,
    };
    if (!this.#conf.useVc) {
      const until = network.clock.now() + this.#conf.timeoutMs;
      const socket = network.udp();
      try {
        const fault = socket.connect(server);
        if (fault !== null) return { error: socketError('dial', where, fault, 'udp') };
        const sent = socket.send(query, server);
        if (typeof sent === 'string') return { error: socketError('write', where, sent, 'udp') };
        const arrival = await waitFor(socket, query, until);
        if (arrival?.kind !== 'reply')
          return { error: socketError('read', where, arrival?.fault ?? 'timeout', 'udp') };
        if (!arrival.reply.truncated) return { ...arrival, reply: received(arrival.reply) };
        note(arrival.exchange, 'Truncated: Go repeats this question over TCP.');
      } finally {
        socket.close();
      }
    }
    const until = network.clock.now() + this.#conf.timeoutMs;
    const connection = await network.tcp(server, until);
    if (typeof connection === 'string')
      return { error: socketError('dial', where, connection, 'tcp') };
    try {
      connection.send(query, server);
      const arrival = await connection.wait(until);
      if (arrival?.kind !== 'reply')
        return { error: socketError('read', where, arrival?.fault ?? 'timeout', 'tcp') };
      if (arrival.reply.truncated && !this.#traits.truncatedTcp) {
        return { error: goError('no answer from DNS server') };
      }
      return arrival;
    } finally {
      connection.close();
    }
  }
}

/** Ignores replies to other questions. */
async function waitFor(socket: Socket, query: QueryToSend, until: number): Promise<Arrival | null> {
  for (;;) {
    const arrival = await socket.wait(until);
    if (arrival?.kind !== 'reply' || sameName(arrival.reply.name, query.name)) return arrival;
  }
}

/** Returns the complete records in a datagram that fit into a 1232-byte buffer. */
function received(reply: ClientReply): ClientReply {
  if (reply.size <= maxPacket) return reply;
  let at = questionBytes(reply.name);
  const answer = reply.answer.filter((record) => {
    at += recordBytes(record, true);
    return at <= maxPacket;
  });
  return { ...reply, answer };
}

async function inTurn<T, R>(items: readonly T[], run: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (const item of items) results.push(await run(item));
  return results;
}

/**
 * Runs all items concurrently and returns the results in order of completion, in which goLookupIPCNAMEOrder reads them
 * from its channel. If both families fail, this order decides which error the program sees.
 */
async function together<T, R>(items: readonly T[], run: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  await Promise.all(
    items.map(async (item) => {
      results.push(await run(item));
    }),
  );
  return results;
}

/** Prints an address like Go, without its interface, and with IPv4-mapped IPv6 addresses as IPv4. */
function unmapped(address: string): string {
  const plain = withoutZone(address);
  const bytes = parseAddress(plain);
  const mapped =
    bytes?.length === 16 && bytes.every((byte, i) => i >= 12 || byte === (i < 10 ? 0 : 0xff));
  return mapped ? [...bytes.slice(12)].join('.') : plain;
}

/**
 * isDomainName in net/dnsclient.go, which allows letters, digits, `_` and `-` in labels of 1 to 63 characters, but not
 * only digits.
 */
function isDomainName(name: string): boolean {
  if (name === '.') return true;
  if (name.length > 254 || (name.length === 254 && !name.endsWith('.'))) return false;
  const labels = (name.endsWith('.') ? name.slice(0, -1) : name).split('.');
  const shaped = labels.every((label) => /^(?!-)[A-Za-z0-9_-]{1,63}(?<!-)$/.test(label));
  return shaped && /[A-Za-z_-]/.test(name);
}
