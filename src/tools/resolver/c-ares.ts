/**
 * ares_getaddrinfo, which uses one socket per server for the whole search, and A and AAAA together. The search
 * continues after NXDOMAIN or NODATA, while any other failure ends the lookup. It is used by curl built with c-ares,
 * Envoy and gRPC. Retries differ by release: see `c-ares-old.ts` and, since 1.22, `c-ares-channel.ts`.
 */
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
import { OldChannel } from './c-ares-old.ts';
import { Channel } from './c-ares-channel.ts';
import { readCaresConf, type CaresConf } from './c-ares-conf.ts';
import { caresReleases, type CaresTraits } from './c-ares-releases.ts';
import { dottedQuad } from './glibc-conf.ts';
import { readHosts, entriesFor, hostAlias, mergedAddresses } from './hosts.ts';
import { familyOf } from './myhostname.ts';
import { hasCname } from './reply.ts';
import { cite } from './resolver-rules.ts';
import { isSendable } from './search-list.ts';
import { candidates, rootedReason, type SearchCandidate } from './search-reasons.ts';
import {
  caresError,
  plainSetup,
  usableAddresses,
  type CaresChannel,
  type CaresStatus,
  type ChannelSetup,
} from './c-ares-status.ts';

export const cares: ClientLine = clientLine('c-ares', caresReleases, (version, traits) => ({
  summary: `ares_getaddrinfo in c-ares ${version}: Envoy, gRPC, curl built with it`,
  anyOrder: traits.tellsErrors,
  conf: (settings) => readCaresConf(settings, traits),
  open: (context) => new CaresSession(context, traits),
}));

/** Opens the sending half of this release. */
export function openChannel(
  context: ModelContext,
  conf: CaresConf,
  traits: CaresTraits,
  setup: ChannelSetup,
): CaresChannel {
  return new (traits.sortsServers ? Channel : OldChannel)(context, conf, traits, setup);
}

class CaresSession implements Session {
  readonly #context: ModelContext;
  readonly #traits: CaresTraits;
  readonly #conf: CaresConf;
  readonly #channel: CaresChannel;

  constructor(context: ModelContext, traits: CaresTraits) {
    this.#context = context;
    this.#traits = traits;
    this.#conf = readCaresConf(context.settings, traits);
    this.#channel = openChannel(context, this.#conf, traits, plainSetup);
  }

  async lookup(request: Request): Promise<LookupOutcome> {
    const result = await this.#lookup(request);
    this.#channel.rest();
    return result;
  }

  async #lookup({ name, families }: Request): Promise<LookupOutcome> {
    if (/\.onion\.?$/i.test(name)) return caresError('ENOTFOUND');
    const typed = (this.#traits.asksForLiterals ? null : dottedQuad(name)) ?? name;
    const literal = parseAddress(typed);
    if (literal !== null && families.includes(literal.length === 4 ? 4 : 6)) return found([typed]);
    // An IPv4 address is returned for either family.
    if (literal?.length === 4) {
      const more = this.#traits.asksForLiterals ? await this.#walk(name, families) : null;
      return found([typed, ...(more?.addresses ?? [])]);
    }
    const { search } = this.#conf;
    if (this.#traits.needsSearchList && search.length === 0 && !name.endsWith('.')) {
      this.#context.trace.step(
        'Without a search list, this release finds nothing (a bug in 1.28.0)',
      );
      return caresError('ENOTFOUND');
    }
    let status: CaresStatus = 'ECONNREFUSED';
    for (const letter of this.#conf.lookups) {
      if (letter === 'f') {
        const listed = this.#files(name, families);
        if (listed !== null) return listed;
      } else if (!this.#isLocal(name)) {
        const result = await this.#walk(name, families);
        if (result.addresses.length > 0) return found(result.addresses);
        status = result.status;
        if (result.final) break;
      }
    }
    return caresError(status);
  }

  /** True if the name is answered without a server, which never applies to names with a trailing dot. */
  #isLocal(name: string): boolean {
    const { localhost, foldsLocalhost } = this.#traits;
    const folded = foldsLocalhost ? name.toLowerCase() : name;
    if (localhost === 'none') return false;
    return folded === 'localhost' || (localhost === 'below' && folded.endsWith('.localhost'));
  }

  #files(name: string, families: readonly AddressFamily[]): LookupOutcome | null {
    const { trace, settings } = this.#context;
    // Addresses with an interface (`%eth0`) are not supported. Later releases also skip names that are not valid host
    // names.
    const old = !this.#traits.mergesHosts;
    const entries = readHosts(settings.hosts, old ? undefined : /(^|\s)#.*$/s)
      .filter((entry) => !entry.address.includes('%'))
      .map((entry) => (old ? entry : { ...entry, names: entry.names.filter(isHostName) }));
    const all = old
      ? entriesFor(entries, name).map((entry) => entry.address)
      : mergedAddresses(entries, name);
    const listed = all.filter((address) => families.includes(familyOf(address)));
    const { hostsFinal } = this.#traits;
    if (hostsFinal && all.length > 0 && listed.length === 0) {
      trace.step(
        `hosts file: "${name}" is listed without an address of this family, so the lookup ends`,
      );
      return found([]);
    }
    const local = this.#isLocal(name) && (listed.length === 0 || !(old || hostsFinal));
    // A family that is missing from the file gets its loopback address.
    const missing = families.filter((family) => !listed.some((one) => familyOf(one) === family));
    const loopback = missing.map((family) => (family === 4 ? '127.0.0.1' : '::1'));
    const addresses = local ? [...listed, ...loopback] : listed;
    if (addresses.length === 0) {
      trace.step(`hosts file: no entry for "${name}"`);
      return null;
    }
    const source = local ? 'c-ares knows' : 'hosts file has';
    trace.step(
      `${source} "${name}": ${addresses.join(' ')}. No query is sent. ${cite('hosts-file')}`,
    );
    return found(addresses);
  }

  async #walk(
    typed: string,
    families: readonly AddressFamily[],
  ): Promise<{ addresses: string[]; status: CaresStatus; final: boolean }> {
    let sawNoData = false;
    let status: CaresStatus = 'ENOTFOUND';
    for (const { name, why } of this.#names(typed)) {
      if (
        !isSendable(name, this.#traits.longestName) ||
        (this.#traits.hostNames && !isHostName(name))
      ) {
        this.#context.trace.step(
          `"${absolute(name)}" is too long or not a host name, so c-ares fails the whole lookup`,
        );
        const status = this.#traits.tellsBadName ? 'EBADNAME' : 'ENOMEM';
        return { addresses: [], status, final: true };
      }
      const { trace } = this.#context;
      const since = trace.exchanges.length;
      const pending = families.map((family) => ({
        family,
        query: this.#channel.query(absolute(name), family === 4 ? 'A' : 'AAAA', why),
      }));
      const addresses: string[] = [];
      // The query that finishes last determines how the search continues.
      let last = 'ENOTFOUND' as CaresStatus;
      await Promise.all(
        pending.map(async ({ query }, index) => {
          const ended = await query.done;
          const usable =
            ended.status === 'SUCCESS' && ended.reply !== null
              ? usableAddresses(ended.reply, this.#traits)
              : [];
          addresses.push(...usable);
          const empty = ended.status === 'SUCCESS' && usable.length === 0;
          const alias = ended.reply !== null && hasCname(ended.reply);
          last = !empty ? ended.status : alias && this.#traits.diesOfCname ? 'SIGSEGV' : 'ENODATA';
          if (pending[index]?.query.cached !== true && this.#isEnough(usable))
            pending[1 - index]?.query.stopRetrying();
        }),
      );
      if (addresses.length > 0) {
        trace.conclude(since, `An address was found, so the walk ends here. ${cite('cares-stop')}`);
        return { addresses, status: 'SUCCESS', final: true };
      }
      const lastStatus = last as CaresStatus;
      if (lastStatus === 'ENODATA') sawNoData = true;
      const goesOn = lastStatus === 'ENODATA' && !this.#traits.nodataEnds;
      if (goesOn || lastStatus === 'ENOTFOUND') {
        status = sawNoData ? 'ENODATA' : 'ENOTFOUND';
        trace.conclude(
          since,
          `No address was found, so the next name is tried, if there is one. ${cite('cares-next')}`,
        );
        continue;
      }
      // A single label may have been refused by a stub that only resolves names with dots.
      const single = this.#traits.singleLabelGoesOn && countDots(name) === 0;
      if (single && (lastStatus === 'ESERVFAIL' || lastStatus === 'EREFUSED')) {
        status = sawNoData ? 'ENODATA' : lastStatus;
        continue;
      }
      trace.conclude(
        since,
        `The result is not an address, NXDOMAIN or NODATA, so c-ares ends the lookup. ${cite('cares-fail')}`,
      );
      return { addresses: [], status: lastStatus, final: true };
    }
    return { addresses: [], status, final: false };
  }

  #names(name: string): readonly SearchCandidate[] {
    const { aliases, dotIsFinal, rootDomain } = this.#traits;
    const alias = aliases === 'none' ? null : hostAlias(this.#context.settings.hostAliases, name);
    if (alias !== null && aliases === 'alone') {
      return [{ name: alias, why: 'HOSTALIASES names it.' }];
    }
    const typed = alias ?? name;
    if (typed.endsWith('.') && dotIsFinal) return [{ name: typed, why: rootedReason }];
    return candidates(typed, this.#conf, (domain) =>
      domain === '.' && rootDomain ? `${typed}.` : `${typed}.${domain}`,
    );
  }

  /** True if these addresses make it unnecessary to retry for the other family. */
  #isEnough(addresses: readonly string[]): boolean {
    const { enough } = this.#traits;
    if (enough === 'ipv4') return addresses.some((address) => familyOf(address) === 4);
    return enough === 'any' && addresses.length > 0;
  }
}

/** The only characters that host names may contain since 1.22. */
function isHostName(name: string): boolean {
  return /^[A-Za-z0-9._/*-]+$/.test(name);
}
