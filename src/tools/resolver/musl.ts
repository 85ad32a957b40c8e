/**
 * musl's getaddrinfo (Alpine). Every query goes to all servers at once from one socket, and the first good answer
 * counts. NXDOMAIN for one family means that the name does not exist, and NODATA for both ends the search. SERVFAIL or
 * silence makes the whole lookup fail. The facts are in docs/resolvers.md, and the source is
 * src/network/{lookup_name,res_msend}.c.
 */
import { parseAddress } from '../../server/base/ip.ts';
import {
  absolute,
  countDots,
  failed,
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
import { shortIPv4 } from './glibc-conf.ts';
import { readMuslHosts } from './hosts.ts';
import { readMuslConf } from './musl-conf.ts';
import { muslReleases, type MuslTraits } from './musl-releases.ts';
import { familyOf, withoutZone } from './myhostname.ts';
import { MuslExchange } from './musl-send.ts';
import type { QueryToSend } from './network.ts';
import type { ClientReply } from './reply.ts';
import type { ResolvConf } from './resolv-conf.ts';
import { cite } from './resolver-rules.ts';
import { isSendable } from './search-list.ts';
import { enoughDots, fewDots, lastAsIs, rootedReason } from './search-reasons.ts';

/** The maximum number of addresses returned by a lookup. */
const mostAddresses = 48;

export const musl: ClientLine = clientLine('musl', muslReleases, (version, traits) => ({
  summary: `getaddrinfo in musl ${version}: Alpine`,
  anyOrder: false,
  conf: readMuslConf,
  open: (context) => new MuslSession(context, traits),
}));

const errors = {
  NONAME: failed('EAI_NONAME', -2, 'Name does not resolve'),
  AGAIN: failed('EAI_AGAIN', -3, 'Try again'),
  NODATA: failed('EAI_NODATA', -5, 'Name has no usable address'),
} as const;
const died = failed('SIGFPE', null, 'Floating point exception');

/** Null if the name does not exist and the next one should be tried. */
type NameOutcome = LookupOutcome | null;

class MuslSession implements Session {
  readonly #context: ModelContext;
  readonly #traits: MuslTraits;

  constructor(context: ModelContext, traits: MuslTraits) {
    this.#context = context;
    this.#traits = traits;
  }

  /** The error for a name without addresses. */
  get #noData(): LookupOutcome {
    return this.#traits.nodata ? errors.NODATA : errors.NONAME;
  }

  async lookup(request: Request): Promise<LookupOutcome> {
    const { name } = request;
    const { loopback } = this.#context.settings.host;
    let { families } = request;
    let noFamily = false;
    if (request.addrConfig) {
      // musl only checks which families the loopback interface has.
      const usable = families.filter((family) => loopback.includes(family));
      if (usable.length === 0) noFamily = true;
      else families = usable;
    }
    if (name === '' || name.length > 254) return errors.NONAME;
    const literal = shortIPv4(name) ?? name;
    if (parseAddress(literal.replace(/%.*/s, '')) !== null) {
      return families.includes(familyOf(literal)) ? found([withoutZone(literal)]) : this.#noData;
    }
    if (noFamily && !this.#traits.nodata) return errors.NONAME;
    const listed = this.#hosts(name, families);
    const result = listed ?? (await this.#search(name, families));
    return noFamily ? this.#noData : result;
  }

  #hosts(name: string, families: readonly AddressFamily[]): LookupOutcome | null {
    const entries = readMuslHosts(this.#context.settings.hosts).filter((entry) =>
      entry.names.includes(name),
    );
    const fitting = entries.filter((entry) => families.includes(entry.family));
    const { trace } = this.#context;
    if (fitting.length > 0) {
      trace.step(
        `hosts file, line ${fitting[0]?.line ?? 0}: "${name}" is listed. No query is sent. ${cite('hosts-file')}`,
      );
      return found(fitting.slice(0, mostAddresses).map((entry) => entry.address));
    }
    trace.step(`hosts file: no entry for "${name}"`);
    return entries.length > 0 ? this.#noData : null;
  }

  async #search(typed: string, families: readonly AddressFamily[]): Promise<LookupOutcome> {
    const conf = readMuslConf(this.#context.settings);
    const dots = countDots(typed);
    const rooted = typed.endsWith('.');
    const bare = rooted ? typed.slice(0, -1) : typed;
    if (bare === '' || bare.endsWith('.')) return errors.NONAME;
    const searching = !rooted && dots < conf.ndots;
    for (const [index, domain] of (searching ? conf.search : []).entries()) {
      if (domain.length >= 256 - bare.length - 1) {
        this.#context.trace.step(
          `"${bare}.${domain}" is too long, so musl skips this search domain`,
        );
        continue;
      }
      const why = `${fewDots(typed, conf, index)}. ${cite('search')}`;
      const outcome = await this.#name(`${bare}.${domain}`, families, conf, why);
      if (outcome !== null) return outcome;
    }
    const why = searching
      ? lastAsIs(conf)
      : rooted
        ? rootedReason
        : `${enoughDots(typed, conf)}: musl queries the name as written, and ignores the search list. ${cite('as-is')}`;
    return (await this.#name(bare, families, conf, why)) ?? errors.NONAME;
  }

  async #name(
    name: string,
    families: readonly AddressFamily[],
    conf: ResolvConf,
    why: string,
  ): Promise<NameOutcome> {
    if (name.endsWith('..') && !this.#traits.nodata) {
      // `search .` produces "name..", which this release turns into a malformed message that no server answers.
      this.#context.trace.step(
        `musl builds a malformed query from "${name}" (search domain "."), which is not answered, so the lookup fails with EAI_AGAIN`,
      );
      const { clock } = this.#context.network;
      await new Promise<void>((resolve) => clock.after(conf.timeoutMs, resolve));
      return errors.AGAIN;
    }
    if (!isSendable(name)) {
      this.#context.trace.step(
        `"${absolute(name)}" cannot be sent, because it is too long or has an empty label`,
      );
      return this.#traits.nodata ? null : errors.NONAME;
    }
    if (conf.attempts === 0) {
      this.#context.trace.step(
        'musl divides the timeout by the attempts in resolv.conf, so attempts:0 crashes the process (SIGFPE)',
      );
      return died;
    }
    const queries = this.#queries(name, families, why);
    const exchange = new MuslExchange(this.#context, conf, queries, this.#traits);
    const { trace } = this.#context;
    const since = trace.exchanges.length;
    const answers = await exchange.run();
    if (this.#traits.halfIsEnough) {
      const half = this.#addresses(answers.flatMap((answer) => answer?.reply ?? []));
      if (half.length > 0) {
        trace.conclude(since, `An address was found, so the walk ends here. ${cite('musl-stop')}`);
        return found(half);
      }
    }
    // Before 1.2.1, only the first reply determines why there is no address.
    const judged = this.#traits.halfIsEnough ? queries.slice(0, 1) : queries;
    for (const [index, query] of judged.entries()) {
      const answer = answers[index];
      if (answer === null || answer === undefined) {
        trace.conclude(
          since,
          `No usable answer for ${query.type}: musl fails the whole lookup. ${cite('musl-fail')}`,
        );
        return errors.AGAIN;
      }
      if (answer.reply.rcode === 'NXDOMAIN') {
        const other = queries.length > 1 ? ', regardless of the other family' : '';
        trace.conclude(
          since,
          `NXDOMAIN for ${query.type}: the name does not exist${other}. The next name is tried, if there is one. ${cite('musl-next')}`,
        );
        return null;
      }
    }
    const addresses = this.#addresses(answers.flatMap((answer) => answer?.reply ?? []));
    if (addresses.length > 0) {
      trace.conclude(since, `An address was found, so the walk ends here. ${cite('musl-stop')}`);
      return found(addresses);
    }
    trace.conclude(
      since,
      `The name exists but has no address, so musl ends the search here and fails. ${cite('musl-stop')}`,
    );
    return this.#noData;
  }

  #queries(name: string, families: readonly AddressFamily[], why: string): QueryToSend[] {
    const first = newId(this.#context.random);
    return families.map((family, index) => ({
      // IDs come from the clock, and the second is the first plus the nanoseconds in between.
      id: (first + 160 * index) & 0xffff,
      name: absolute(name),
      type: family === 4 ? 'A' : 'AAAA',
      edns: null,
      ad: false,
      why,
    }));
  }

  #addresses(replies: readonly ClientReply[]): string[] {
    const { anyType } = this.#traits;
    const ordered = anyType ? replies : [...replies].reverse();
    return ordered
      .flatMap((reply) =>
        reply.answer
          .filter((record) =>
            anyType ? record.type === 'A' || record.type === 'AAAA' : record.type === reply.type,
          )
          .map((record) => record.data),
      )
      .slice(0, mostAddresses);
  }
}
