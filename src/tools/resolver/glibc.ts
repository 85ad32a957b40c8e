/**
 * glibc's getaddrinfo, with nsswitch and, for `dns`, the search list with a pair of queries per name. The facts are in
 * docs/resolvers.md. `glibc-send.ts` sends the queries for each step.
 */
import type { Random } from '../../server/base/random.ts';
import { parseAddress } from '../../server/base/ip.ts';
import {
  absolute,
  countDots,
  found,
  clientLine,
  type AddressFamily,
  type LookupOutcome,
  type Request,
  type Session,
  type ModelContext,
  type ClientLine,
} from './client.ts';
import { readGlibcConf, shortIPv4 } from './glibc-conf.ts';
import { glibcReleases, type GlibcTraits } from './glibc-releases.ts';
import { GlibcTransport } from './glibc-send.ts';
import {
  errors,
  explain,
  isHostName,
  joined,
  judge,
  judgeSingle,
  mergePair,
  notFound,
  pairBytes,
  simpleError,
  singleBytes,
  success,
  unavailable,
  verdictError,
  type NssVerdict,
  type Walked,
} from './glibc-verdict.ts';
import { entriesFor, hostAlias, readHosts, type HostsEntry } from './hosts.ts';
import { familyOf, myHostname, withoutZone } from './myhostname.ts';
import type { QueryToSend } from './network.ts';
import { readHostsLine, type NsswitchService } from './nsswitch.ts';
import type { ClientReply } from './reply.ts';
import type { ResolvConf } from './resolv-conf.ts';
import { cite } from './resolver-rules.ts';
import { isSendable } from './search-list.ts';
import { asIsFirst, lastAsIs, rootedReason, searchReason } from './search-reasons.ts';

export const glibc: ClientLine = clientLine('glibc', glibcReleases, (version, traits) => ({
  summary: `getaddrinfo in glibc ${version}: Debian, Ubuntu, Fedora and images based on them`,
  anyOrder: false,
  conf: (settings) => readGlibcConf(settings, traits),
  open: (context) => new GlibcSession(context, traits),
}));

/** A process that uses glibc. Also serves as the base for models of programs on libc. */
export class GlibcSession implements Session {
  readonly #context: ModelContext;
  readonly #conf: ResolvConf;
  readonly #services: readonly NsswitchService[];
  /** Null if nsswitch.conf is usable. */
  readonly #unreadable: string | null;
  readonly #hosts: readonly HostsEntry[];
  readonly #transport: GlibcTransport;
  readonly #traits: GlibcTraits;

  constructor(context: ModelContext, traits: GlibcTraits) {
    this.#context = context;
    this.#traits = traits;
    this.#conf = readGlibcConf(context.settings, traits);
    const { services, problem } = readHostsLine(context.settings.nsswitch, traits);
    this.#services = services;
    this.#unreadable = problem;
    // An address with an interface after `%` is ignored.
    this.#hosts = readHosts(context.settings.hosts).filter((entry) => !entry.address.includes('%'));
    this.#transport = new GlibcTransport(context, this.#conf, traits);
  }

  lookup(request: Request): Promise<LookupOutcome> {
    return this.#lookup(request, false);
  }

  /**
   * Looks up a name as Go calls libc, with AI_CANONNAME, AI_V4MAPPED and AI_ALL. Mapped addresses are removed from the
   * result.
   */
  lookupMapped(request: Request): Promise<LookupOutcome> {
    return this.#lookup(request, true);
  }

  async #lookup(request: Request, mapped: boolean): Promise<LookupOutcome> {
    const { name } = request;
    let { families } = request;
    if (request.addrConfig) {
      const narrowed = this.#configured(families);
      if (narrowed === null) return errors.NONAME;
      families = narrowed;
    }
    const literal = literalAddress(name);
    if (literal !== null) {
      return families.includes(familyOf(literal))
        ? found([withoutZone(literal)])
        : mapped && familyOf(literal) === 4
          ? found([])
          : errors.ADDRFAMILY;
    }
    const simple = families.length === 1 && families[0] === 4 && !mapped;
    if (this.#unreadable !== null) {
      this.#context.trace.step(
        `nsswitch.conf, ${this.#unreadable}, so glibc does not query any server`,
      );
      return simple ? errors.SYSTEM : errors.NONAME;
    }
    if (simple && /^\d([\d.]*\d)?$/.test(name)) {
      this.#context.trace.step(
        `"${name}" looks like an IPv4 address but is not one: glibc sends nothing`,
      );
      return errors.NONAME;
    }
    let verdict = unavailable;
    const all: string[] = [];
    for (const service of this.#services) {
      verdict =
        mapped && families.length === 1 && families[0] === 6
          ? joined(
              await this.#ask(service, name, [6], true),
              await this.#ask(service, name, [4], true),
            )
          : await this.#ask(service, name, families, mapped);
      const action = service.actions[verdict.status];
      if (this.#traits.addsServices) all.push(...verdict.addresses);
      if (action === 'return') break;
      if (action === 'merge' && !this.#traits.addsServices) {
        this.#context.trace.step('[…=merge] is not possible for hosts: glibc gives up');
        return errors.NONAME;
      }
    }
    if (all.length > 0) return found(all);
    if (verdict.status === 'success') return found(verdict.addresses);
    return simple ? simpleError(verdict, this.#traits.newAnswers) : verdictError(verdict);
  }

  /** gethostbyname2, which looks up one family through the same nsswitch services and is called by `getent hosts`. */
  lookupOne(name: string, family: AddressFamily): Promise<LookupOutcome> {
    return this.lookup({ name, families: [family], addrConfig: false });
  }

  /** AI_ADDRCONFIG: only addresses outside the loopback interface count, but even link-local ones do. */
  #configured(families: readonly AddressFamily[]): readonly AddressFamily[] | null {
    const { addresses } = this.#context.settings.host;
    const seen = families.filter((family) => addresses.some((own) => familyOf(own) === family));
    if (families.length === 2) return seen.length === 0 ? families : seen;
    return seen.length === 0 ? null : families;
  }

  async #ask(
    service: NsswitchService,
    name: string,
    families: readonly AddressFamily[],
    mapped: boolean,
  ): Promise<NssVerdict> {
    const { trace, settings } = this.#context;
    switch (service.name) {
      case 'files':
        return this.#files(name, families);
      case 'dns':
        return this.#dns(name, families, mapped);
      case 'myhostname': {
        const own = myHostname(name, settings.host, families);
        trace.step(
          own === null || own.length === 0
            ? `nss-myhostname: "${name}" is neither localhost nor this machine's name`
            : `nss-myhostname answers "${name}" itself: ${own.join(' ')}`,
        );
        return own === null || own.length === 0 ? notFound : success(own);
      }
      default:
        trace.step(
          `nsswitch service "${service.name}" is not available here, so the next one is tried`,
        );
        return unavailable;
    }
  }

  #files(name: string, families: readonly AddressFamily[]): NssVerdict {
    const entries = entriesFor(this.#hosts, name);
    const addresses: string[] = [];
    for (const entry of entries) {
      if (families.includes(entry.family)) addresses.push(entry.address);
      // For IPv4 alone, ::1 in the hosts file is returned as 127.0.0.1.
      else if (entry.family === 6 && entry.address === '::1') addresses.push('127.0.0.1');
    }
    this.#context.trace.step(
      addresses.length === 0
        ? `hosts file: no entry for "${name}"`
        : `hosts file, line ${entries[0]?.line ?? 0}: ${addresses.join(' ')}. No query is sent. ${cite('hosts-file')}`,
    );
    return addresses.length === 0 ? notFound : success(addresses);
  }

  async #dns(
    typed: string,
    families: readonly AddressFamily[],
    mapped: boolean,
  ): Promise<NssVerdict> {
    // The function that looks up one family with its canonical name does not check which characters the name contains.
    const unchecked = mapped && families.length === 1;
    if (!unchecked && !isHostName(typed)) {
      this.#context.trace.step(`glibc sends no query for "${typed}": it is not a valid host name`);
      return notFound;
    }
    let types = families.map((family) => (family === 4 ? 'A' : 'AAAA'));
    if (this.#conf.noAaaa && types.includes('AAAA')) {
      this.#context.trace.step(
        types.length === 2
          ? 'option no-aaaa: AAAA is not queried'
          : 'option no-aaaa: A is queried instead of AAAA, to learn whether the name exists; its addresses are dropped',
      );
      types = types.length === 2 ? ['A'] : ['AAAA'];
    }
    const alias = hostAlias(this.#context.settings.hostAliases, typed);
    if (alias !== null)
      this.#context.trace.step(`HOSTALIASES: "${typed}" is an alias of "${alias}"`);
    const name = alias ?? typed;
    const both = families.length === 2;
    // The result for both families is built in a 1024-byte buffer. If that is too small, everything is repeated.
    for (let room = 1024; ; room *= 2) {
      const walked = await this.#search(name, types);
      if (!walked.ok) {
        const unavailable = walked.errno === 'ECONNREFUSED' || walked.errno === 'ETIMEDOUT';
        const status = unavailable ? 'unavail' : 'notfound';
        return { status, herrno: walked.herrno, addresses: [] };
      }
      const { newAnswers } = this.#traits;
      const verdict = both ? mergePair(walked, newAnswers) : judgeSingle(walked, newAnswers);
      if (verdict.status !== 'success') return verdict;
      const bytes = both
        ? pairBytes(verdict.addresses.length, typed, walked)
        : singleBytes(verdict.addresses, typed, walked);
      if (bytes <= room) return verdict;
      this.#context.trace.step(
        `${verdict.addresses.length} addresses need ${bytes} bytes, but glibc’s buffer has ${room}, so it repeats the whole lookup ${cite('glibc-buffer')}`,
      );
    }
  }

  /** res_search, which decides the names to try and how each result affects the search. */
  async #search(typed: string, types: readonly string[]): Promise<Walked> {
    const alias = hostAlias(this.#context.settings.hostAliases, typed);
    if (alias !== null) return this.#query(alias, types, 'HOSTALIASES names it');
    const { ndots, search, noTldQuery } = this.#conf;
    const dots = countDots(typed);
    const rooted = typed.endsWith('.');
    let saved: Walked | null = null;
    if (dots >= ndots || rooted) {
      const why = rooted ? rootedReason : asIsFirst(typed, this.#conf);
      const result = await this.#query(typed, types, why);
      if (result.ok || rooted) return result;
      saved = result;
    }
    let sawNoData = false;
    let sawServfail = false;
    let root = false;
    let last: Walked | null = saved;
    if (!rooted) {
      for (const [index, entry] of search.entries()) {
        const domain = entry.startsWith('.') ? entry.slice(1) : entry;
        if (domain === '') root = true;
        const why = searchReason(typed, this.#conf, index, saved !== null);
        const result = await this.#query(`${typed}.${domain}`, types, why);
        if (result.ok) return result;
        last = result;
        if (result.errno === 'ECONNREFUSED')
          return { ok: false, herrno: 'TRY_AGAIN', errno: 'ECONNREFUSED' };
        if (result.herrno === 'NO_DATA') sawNoData = true;
        else if (result.herrno === 'TRY_AGAIN' && this.#lastRcode === 'SERVFAIL')
          sawServfail = true;
        else if (result.herrno !== 'HOST_NOT_FOUND') {
          this.#context.trace.step(
            'glibc skips the rest of the search list and queries the name as written',
          );
          break;
        }
      }
    }
    if (saved === null && !root && (dots > 0 || search.length === 0 || !noTldQuery)) {
      const result = await this.#query(typed, types, lastAsIs(this.#conf));
      if (result.ok) return result;
      last = result;
    }
    const errno = last !== null && !last.ok ? last.errno : '';
    if (saved !== null && !saved.ok) return { ok: false, herrno: saved.herrno, errno };
    if (sawNoData) return { ok: false, herrno: 'NO_DATA', errno };
    if (sawServfail) return { ok: false, herrno: 'TRY_AGAIN', errno };
    return { ok: false, herrno: last !== null && !last.ok ? last.herrno : 'HOST_NOT_FOUND', errno };
  }

  #lastRcode = 'NOERROR';

  /** res_query, for a single name. NOERROR with any record is a success, even if that is a CNAME without a target. */
  async #query(name: string, types: readonly string[], why: string): Promise<Walked> {
    this.#lastRcode = 'NOERROR';
    if (!isSendable(name)) {
      this.#context.trace.step(`"${absolute(name)}" is too long for DNS, so it is not sent`);
      return { ok: false, herrno: 'NO_RECOVERY', errno: '' };
    }
    const ids = clockIds(this.#context.random, types.length);
    const queries: QueryToSend[] = types.map((type, at) => {
      const id = ids[at]!;
      const stand = this.#conf.noAaaa && type === 'AAAA';
      const edns = this.#conf.edns0 && !stand ? { size: 1200, cookie: false } : null;
      const asked = stand ? 'A' : type;
      return { id, name: absolute(name), type: asked, edns, ad: this.#conf.trustAd, why };
    });
    const { trace } = this.#context;
    const since = trace.exchanges.length;
    const sent = await this.#transport.send(queries);
    if (!sent.ok) {
      this.#lastRcode = sent.firstRcode;
      // With no-aaaa, if there is no reply to the A query that replaced AAAA, this counts as an empty answer.
      const silent = this.#conf.noAaaa && types[0] === 'AAAA' && !sent.heard;
      const herrno = silent ? 'NO_DATA' : 'TRY_AGAIN';
      const result: Walked = { ok: false, herrno, errno: sent.errno };
      trace.conclude(since, explain(result, sent.firstRcode));
      return result;
    }
    const standIn = this.#conf.noAaaa && types[0] === 'AAAA';
    const result = judge(standIn ? { ...sent, first: withoutAnswer(sent.first) } : sent);
    // Over TCP, an error reply is accepted as the answer.
    this.#lastRcode = sent.first?.rcode ?? 'NOERROR';
    trace.conclude(since, explain(result, this.#lastRcode));
    return result;
  }
}

/** With no-aaaa, the reply to the A query that replaced AAAA counts, but without its records. */
function withoutAnswer(reply: ClientReply | null): ClientReply | null {
  return reply === null ? null : { ...reply, answer: [] };
}

function literalAddress(name: string): string | null {
  const address = /^[\da-fx.]+$/i.test(name) ? shortIPv4(name) : null;
  if (address !== null) return address;
  return name.includes(':') && parseAddress(name.replace(/%.*/s, '')) !== null ? name : null;
}

/** Nanoseconds between two consecutive queries. */
const MADE_NS = { least: 150, more: 1300 };

/**
 * Generates IDs like glibc (include/random-bits.h), from the nanoseconds of a clock, folded, with the lower byte first.
 * IDs in the same call have nearly the same time.
 */
function clockIds(random: Random, count: number): readonly number[] {
  const ids: number[] = [];
  let ns = 0;
  for (let at = 0; at < count; at++) {
    const drawn = random.integer(0x10000);
    ns = at === 0 ? drawn : ns + MADE_NS.least + (drawn % MADE_NS.more);
    let id = folded(ns);
    // glibc makes sure that the IDs differ.
    while (ids.includes(id)) id = folded(++ns);
    ids.push(id);
  }
  return ids;
}

function folded(ns: number): number {
  const bits = ns ^ (ns >>> 8);
  return ((bits & 0xff) << 8) | ((bits >>> 8) & 0xff);
}
