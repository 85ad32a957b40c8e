/** `dns64`: synthesizes AAAA records from A records for IPv6-only clients (RFC 6147). */
import { andThen, isLater, type Maybe } from '../../base/maybe.ts';
import { parseNet, type Net } from '../../base/ip.ts';
import { optional } from '../../corefile/positions.ts';
import { pluginRemark } from '../../corefile/problems.ts';
import { chained, flag, list, setting } from '../../corefile/properties.ts';
import { directive, type Options } from '../../corefile/syntax.ts';
import { net, value, wrong, type Value } from '../../corefile/word-values.ts';
import { perRoute } from '../../engine/contract/per-route.ts';
import {
  definePlugin,
  type Next,
  type Plugin,
  type WorkerContext,
} from '../../engine/contract/plugin.ts';
import { RCODE, TYPE } from '../../wire/iana.ts';
import type { Query } from '../../transport/query.ts';
import { silence, type Reply } from '../../wire/reply.ts';
import { withQuestion } from '../../wire/requestion.ts';
import { lengths, Prefix } from './prefix.ts';
import { countAddresses, mostTtl, synthesise, withoutExcluded } from './synthesis.ts';

/** An IPv6 prefix of a length that can embed an IPv4 address. */
const prefixValue: Value<Net> = value(
  'PREFIX',
  ({ text }) => {
    const found = text.includes('/') ? parseNet(text) : null;
    if (found === null) {
      return wrong(`invalid CIDR address: ${text}`, 'Write a prefix like 64:ff9b::/96.');
    }
    if (found.bytes.length !== 16)
      return wrong(`invalid netmask 32 IPv6 address: ${JSON.stringify(text)}`);
    if (found.bits % 8 === 0 && found.bits >= 32 && found.bits <= 96) return found;
    return wrong(
      `invalid prefix length ${JSON.stringify(text)}`,
      `A prefix must have a length of ${lengthsText} (RFC 6052).`,
    );
  },
  net('PREFIX').print,
);

const lengthsText = `${lengths.slice(0, -1).join(', ')} or ${lengths.at(-1)}`;

const wellKnown: Net = parseNet('64:ff9b::/96')!;
/** IPv4-mapped addresses are never used on the network (RFC 6147 section 5.1.4). */
const mapped: Net = parseNet('::ffff:0:0/96')!;

const syntax = directive({
  name: 'dns64',
  summary: 'synthesizes IPv6 addresses for names that have only IPv4 addresses (RFC 6147)',
  repeat: 'merge',
  args: { prefix: optional(prefixValue, { help: 'same as the `prefix` property' }) },
  properties: {
    prefixProperty: chained(
      setting('prefix', prefixValue, {
        help: "the NAT64 translator's prefix; default 64:ff9b::/96, the well-known prefix",
      }),
    ),
    translateAll: chained(
      flag('translate_all', {
        help: 'also translate names that have AAAA records',
      }),
    ),
    allowIpv4: chained(
      flag('allow_ipv4', {
        help: 'also translate queries over IPv4',
      }),
    ),
    exclude: list('exclude', net('CIDR'), {
      help: 'IPv6 networks whose AAAA records are ignored (default ::ffff:0:0/96), or IPv4 networks whose addresses are not translated',
    }),
  },
  warn(options, at) {
    const { bits } = options.prefixProperty ?? options.prefix ?? wellKnown;
    if (lengths.includes(bits)) return [];
    const text = `no translator supports a prefix of ${bits} bits`;
    return [
      pluginRemark('dns64', at, text, {
        code: 'directive-warning',
        hint: `RFC 6052 allows the lengths ${lengthsText}.`,
      }),
    ];
  },
});

export const dns64: Plugin = definePlugin({
  syntax,
  setup: (options, context, next) => new Dns64(options, context, next).link,
});

class Dns64 {
  readonly #next: Next;
  readonly #ask: Next;
  readonly #prefix: Prefix;
  readonly #translateAll: boolean;
  readonly #allowIpv4: boolean;
  readonly #excluded: readonly Net[];
  readonly #untranslated: readonly Net[];
  readonly #count: (route: Query['route']) => { add(amount: number): void };

  constructor(options: Options<typeof syntax>, context: WorkerContext, next: Next) {
    this.#next = next;
    this.#ask = context.ask;
    this.#prefix = new Prefix(options.prefixProperty ?? options.prefix ?? wellKnown);
    this.#translateAll = options.translateAll;
    this.#allowIpv4 = options.allowIpv4;
    const excluded = options.exclude.filter(({ bytes }) => bytes.length === 16);
    this.#excluded = excluded.length === 0 ? [mapped] : excluded;
    this.#untranslated = options.exclude.filter(({ bytes }) => bytes.length === 4);
    const family = context.metrics.counter(
      'coredns_dns64_requests_translated_total',
      'Counter of DNS requests translated by dns64.',
      ['server'],
    );
    this.#count = perRoute(({ server }) => family.with(server));
  }

  readonly link: Next = (query) => {
    const { type } = query;
    if (type !== TYPE.AAAA && type !== TYPE.PTR) return this.#next(query);
    if ((query.family === 4 && !this.#allowIpv4) || !query.isStandard) return this.#next(query);
    if (type === TYPE.PTR) return this.#answerPointer(query);
    // A validating client would reject synthesized addresses as unsigned (RFC 6147 section 5.5).
    if (query.dnssecOk && query.checkingDisabled) return this.#next(query);
    const reply = this.#next(query);
    return isLater(reply) ? andThen(reply, this.#judge, query.keep()) : this.#judge(reply, query);
  };

  /**
   * Decides whether to replace the AAAA reply.
   * @returns the reply to send
   */
  readonly #judge = (reply: Reply, query: Query): Maybe<Reply> => {
    // A bare result code is a failure, and an A query would not change that.
    if (reply.bare || reply.rcode === RCODE.NXDOMAIN) return reply;
    const { counted, excluded } = countAddresses(reply, TYPE.AAAA, this.#excluded);
    const own = excluded === 0 ? reply : withoutExcluded(reply, query, this.#excluded);
    if (counted > 0 && !this.#translateAll) return own;
    const found = this.#next(query.asking(query.wireName, TYPE.A));
    if (!isLater(found)) return this.#translate(found, query, own);
    const asked = query.keep();
    return andThen(found, (later) => this.#translate(later, asked, own));
  };

  /**
   * Builds the AAAA reply from `found`, the reply to the A query.
   * @param own the upstream's AAAA reply
   */
  #translate(found: Reply, query: Query, own: Reply): Reply {
    if (found === silence) return found;
    if (countAddresses(found, TYPE.A, this.#untranslated).counted > 0) {
      this.#count(query.route).add(1);
      return synthesise(found, query, this.#prefix, mostTtl(own), this.#untranslated);
    }
    // Only the two replies together prove that the name has no address.
    const failed = found.rcode !== RCODE.NOERROR && found.rcode !== RCODE.NXDOMAIN;
    const answered = own.rcode === RCODE.NOERROR;
    const stays = failed ? !answered || own.answers > 0 : answered;
    return stays ? own : withQuestion(found, query);
  }

  /**
   * Answers a PTR query for an address in the prefix with the names of the embedded IPv4 address (RFC 6147 section
   * 5.3.1).
   */
  #answerPointer(query: Query): Maybe<Reply> {
    const name = this.#prefix.reverse(query.folded, query.nameLength);
    if (name === null) return this.#next(query);
    this.#count(query.route).add(1);
    return andThen(this.#ask(query.asking(name, TYPE.PTR)), underAlias, query.keep());
  }
}

/** TTL in seconds of the alias that leads from one reverse name to the other. */
const ALIAS_TTL = 600;

function underAlias(found: Reply, query: Query): Reply {
  return withQuestion(found, query, 'stay', ALIAS_TTL);
}
