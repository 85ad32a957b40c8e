/**
 * evdns_getaddrinfo in libevent 2.1. Each address family walks the search list independently. Once the first one has
 * finished, the other has 3 s left. Truncation is an error, and a trailing dot has no meaning.
 */
import type { Timer } from '../../server/base/clock.ts';
import { parseAddress } from '../../server/base/ip.ts';
import {
  countDots,
  failed,
  found,
  soleClient,
  type ClientLine,
  type LookupOutcome,
  type Request,
  type Session,
  type ModelContext,
} from './client.ts';
import { readEvdnsConf } from './evdns-conf.ts';
import { EvdnsServers, type EvdnsError, type EvdnsResult } from './evdns-send.ts';
import { dottedQuad } from './glibc-conf.ts';
import { entriesFor, readHosts } from './hosts.ts';
import { familyOf, withoutZone } from './myhostname.ts';
import type { ResolvConf } from './resolv-conf.ts';
import { isSendable } from './search-list.ts';
import { afterAsIs, enoughDots, fewDots, lastAsIs } from './search-reasons.ts';

export const evdns: ClientLine = soleClient('evdns', {
  summary: 'evdns_getaddrinfo in libevent 2.1.12: Tor, memcached tools, many event-driven servers',
  anyOrder: false,
  conf: readEvdnsConf,
  open: (context) => new EvdnsSession(context),
});

/** Milliseconds left for the second family once the first has finished. */
const skewMs = 3000;

interface EvdnsWalk {
  readonly typed: string;
  readonly type: string;
  /** The index of the search domain, or -1 if the name as typed comes first. */
  index: number;
  readonly end: (result: EvdnsResult) => void;
  drop: () => void;
}

class EvdnsSession implements Session {
  readonly #context: ModelContext;
  readonly #conf: ResolvConf;
  readonly #servers: EvdnsServers;

  constructor(context: ModelContext) {
    this.#context = context;
    this.#conf = readEvdnsConf(context.settings);
    this.#servers = new EvdnsServers(context, this.#conf);
  }

  async lookup({ name, families }: Request): Promise<LookupOutcome> {
    if (this.#servers.count === 0) {
      this.#context.trace.step('no name server in resolv.conf, so evdns cannot be set up');
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
    const types = families.map((family) => (family === 4 ? 'A' : 'AAAA'));
    return new Promise((resolve) => this.#both(name, types, resolve));
  }

  #both(name: string, types: readonly string[], resolve: (found: LookupOutcome) => void): void {
    const results = new Map<string, EvdnsResult>();
    const walks: EvdnsWalk[] = [];
    let skew: Timer | null = null;
    let over = false;
    const finish = (result: LookupOutcome): void => {
      over = true;
      skew?.cancel();
      for (const walk of walks) walk.drop();
      resolve(result);
    };
    const merged = (): LookupOutcome => {
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
      const end = (result: EvdnsResult): void => {
        if (over) return;
        results.set(type, result);
        if (results.size === types.length) return finish(merged());
        skew?.cancel();
        skew = this.#context.network.clock.after(skewMs, () => {
          const late = types.filter((other) => !results.has(other)).join(' and ');
          this.#context.trace.step(
            `evdns no longer waits for ${late}: 3 s after the other family’s answer, it returns what it has`,
          );
          finish(merged());
        });
      };
      const enough = countDots(name) >= this.#conf.ndots || this.#conf.search.length === 0;
      const walk: EvdnsWalk = { typed: name, type, index: enough ? -1 : 0, end, drop: () => {} };
      walks.push(walk);
    }
    for (const walk of walks) this.#ask(walk);
  }

  /**
   * Queries the current name in the search.
   * @param error the previous name's result
   */
  #ask(walk: EvdnsWalk, error: EvdnsError = 'TIMEOUT'): void {
    const { search, ndots } = this.#conf;
    const dots = countDots(walk.typed);
    const searching = walk.index >= 0 && walk.index < search.length;
    const joined = walk.typed.endsWith('.') ? walk.typed : `${walk.typed}.`;
    const name = searching ? `${joined}${search[walk.index] ?? ''}` : walk.typed;
    const why = searching
      ? dots >= ndots
        ? `${afterAsIs(this.#conf, walk.index)} Each family walks separately.`
        : `${fewDots(walk.typed, this.#conf, walk.index)}. Each family walks separately.`
      : walk.index < 0
        ? `${enoughDots(walk.typed, this.#conf)}, so the name is tried as written first.`
        : lastAsIs(this.#conf);
    if (!isSendable(name)) {
      this.#context.trace.step(`"${name}" is too long for DNS: evdns gives up on ${walk.type}`);
      walk.end(error);
      return;
    }
    walk.drop = this.#servers.ask({ name, type: walk.type, why }, (result) => {
      if (typeof result !== 'string' || result === 'TIMEOUT') walk.end(result);
      else this.#next(walk, result);
    });
  }

  /** Moves on to the next name in the search, or ends it. */
  #next(walk: EvdnsWalk, error: EvdnsError): void {
    const { search, ndots } = this.#conf;
    if (search.length === 0 || walk.index >= search.length) return walk.end(error);
    walk.index++;
    // After the last domain, the name is tried as typed unless that came first.
    if (walk.index === search.length && countDots(walk.typed) >= ndots) return walk.end(error);
    this.#ask(walk, error);
  }
}

function failure(error: EvdnsError): LookupOutcome {
  if (error === 'NXDOMAIN')
    return failed('EVUTIL_EAI_NONAME', -2, 'nodename nor servname provided, or not known');
  return failed('EVUTIL_EAI_FAIL', -4, 'non-recoverable failure in name resolution');
}
