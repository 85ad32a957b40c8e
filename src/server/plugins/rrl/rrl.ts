/** `rrl`: limits the rate of responses, so that the server cannot be used to flood third parties with replies. */
import { every } from '../../base/clock.ts';
import { andThen, isLater } from '../../base/maybe.ts';
import { Nets } from '../../base/nets.ts';
import type { Counter } from '../../metrics/registry.ts';
import { TopKeys } from '../../metrics/top-keys.ts';
import { ClientPrefix, clientPrefixSettings } from '../../engine/contract/client-prefix.ts';
import { perRoute } from '../../engine/contract/per-route.ts';
import {
  definePlugin,
  type Next,
  type Plugin,
  type WorkerContext,
} from '../../engine/contract/plugin.ts';
import { ZoneMatch } from '../../engine/contract/zone-match.ts';
import { classify } from '../../wire/classify.ts';
import { EDE, FLAG, RCODE } from '../../wire/iana.ts';
import type { Query, Route } from '../../transport/query.ts';
import { silence, type ExtendedError, type Reply } from '../../wire/reply.ts';
import { wildcardNames, type WildcardOf } from '../../zone/wildcard-names.ts';
import { Accounts } from './accounts.ts';
import { AccountKey, categories, categoryOf, type Category } from './category.ts';
import { limit } from '../../base/limits.ts';
import { zones } from '../../corefile/positions.ts';
import { flag, list, setting } from '../../corefile/properties.ts';
import { directive, type Options } from '../../corefile/syntax.ts';
import { decimal, integer, net } from '../../corefile/word-values.ts';
import { pluginRemark } from '../../corefile/problems.ts';

/** Number of accounts, each of which uses 33 bytes. */
const tableLimit = limit({ default: 20_000, min: 64, max: 5_000_000 });
const windowLimit = limit({ default: 15, min: 1, max: 3600 });
/** BIND's limit; only an attacker would reach it. */
const rate = decimal('ALLOWANCE', { min: 0, max: 1_000_000 });

const syntax = directive({
  name: 'rrl',
  summary: 'limits the rate of identical replies sent to one network over UDP',
  repeat: 'once',
  args: {
    zones: zones({
      help: 'zones whose replies are limited',
      noNumbers: 'Write: rrl { responses-per-second 20 }',
    }),
  },
  properties: {
    windowSeconds: setting('window', integer('SECONDS', windowLimit), {
      default: windowLimit.default,
      help: 'maximum time that a client stays limited after a flood',
    }),
    ...clientPrefixSettings(['ipv4-prefix-length', 'ipv6-prefix-length'], [24, 56]),
    responses: setting('responses-per-second', rate, {
      default: 0,
      help: 'answers with records, per name and type; 0: no limit',
    }),
    nodata: setting('nodata-per-second', rate, {
      help: 'replies without data, per name; default: the value of `responses-per-second`',
    }),
    nxdomains: setting('nxdomains-per-second', rate, {
      help: 'NXDOMAIN, per zone; default: the value of `responses-per-second`',
    }),
    referrals: setting('referrals-per-second', rate, {
      help: 'referrals, per zone; default: the value of `responses-per-second`',
    }),
    errors: setting('errors-per-second', rate, {
      help: 'SERVFAIL, REFUSED and other failures, for all names; default: the value of `responses-per-second`',
    }),
    all: setting('all-per-second', rate, {
      default: 0,
      help: 'all replies together; replies above the limit are dropped without slip; 0: no limit',
    }),
    requests: setting('requests-per-second', rate, {
      default: 0,
      help: 'queries; queries above the limit are dropped before they are processed; 0: no limit',
    }),
    slip: setting('slip-ratio', integer('N', { min: 0, max: 10 }), {
      default: 2,
      help: 'send every Nth limited reply without records and with TC, so that real clients retry over TCP; 0: none, 1: all',
    }),
    exempt: list('exempt-clients', net('NET'), { help: 'networks that are never limited' }),
    table: setting('max-table-size', integer('SIZE', tableLimit), {
      default: tableLimit.default,
      help: 'number of accounts; the least recently used one is evicted',
    }),
    reportOnly: flag('report-only', {
      help: 'do not limit anything; only count and log what would be limited',
    }),
  },
  warn: (options, at) =>
    [
      options.responses,
      options.nodata,
      options.nxdomains,
      options.referrals,
      options.errors,
      options.all,
      options.requests,
    ].some((allowance) => allowance !== null && allowance > 0)
      ? []
      : [
          pluginRemark('rrl', at, 'nothing is limited because no allowance is set', {
            remedy: 'Write, for example: responses-per-second 10',
          }),
        ],
});

type RrlOptions = Options<typeof syntax>;

/** The accounts after the categories, which are for all of a client's replies and for all of its queries. */
const ALL = categories.length;
const REQUESTS = ALL + 1;
const LOG_MS = 60_000;
/** Interval in milliseconds at which the number of dropped accounts is exported. */
const SHOW_MS = 1000;

/** Kept short, because a reply to a forged address must not be much larger than the query. */
const slipped: readonly ExtendedError[] = [{ code: EDE.OTHER, text: 'rate limited' }];

/**
 * Counts UDP replies to each network, and drops or truncates those that exceed its allowances. Streams are never
 * limited.
 */
export const rrl: Plugin = definePlugin({
  syntax,
  setup: (options, context, next) => new Rrl(options, context, next).link,
});

class Rrl {
  readonly #options: RrlOptions;
  readonly #context: WorkerContext;
  readonly #next: Next;
  readonly #zones: ZoneMatch | null;
  readonly #exempt: Nets | null;
  readonly #client: ClientPrefix;
  readonly #accounts: Accounts;
  readonly #key = new AccountKey();
  /** Allowances for each category, for all replies, and for queries; 0 means unlimited. */
  readonly #rates: readonly number[];
  readonly #limits: boolean;
  readonly #counted;
  readonly #offenders: TopKeys;
  #wildcards: readonly WildcardOf[] = [];
  #limited = 0;

  constructor(options: RrlOptions, context: WorkerContext, next: Next) {
    const { metrics, clock, log, zones } = context;
    const { responses, exempt, bits4, bits6 } = options;
    this.#options = options;
    this.#context = context;
    this.#next = next;
    const all = zones.every((zone) => options.zones.includes(zone));
    this.#zones = all ? null : new ZoneMatch(options.zones);
    this.#exempt = exempt.length === 0 ? null : new Nets(exempt);
    this.#client = new ClientPrefix(bits4, bits6);
    // The accounts survive a reload; otherwise, an attacker would only have to wait for one.
    this.#accounts = context.kept(
      [options.table, options.windowSeconds, bits4, bits6].join(' '),
      () => new Accounts(options.table, options.windowSeconds),
    );
    this.#rates = [
      responses,
      options.nodata ?? responses,
      options.nxdomains ?? responses,
      options.referrals ?? responses,
      options.errors ?? responses,
      options.all,
      options.requests,
    ];
    this.#limits = this.#rates.slice(0, REQUESTS).some((rate) => rate > 0);
    this.#counted = counters(context);
    this.#offenders = new TopKeys({
      metrics,
      clock,
      name: 'ndots_rrl_top_clients',
      help: 'Recent replies and queries above the allowances, for the ten clients with the most.',
      label: 'client',
      width: 16,
      print: this.#client.print,
    });
    const evictions = metrics.counter(
      'ndots_rrl_evictions_total',
      'Number of accounts evicted before their window had passed (max-table-size).',
    );
    let counted = this.#accounts.evictions;
    const shown = every(clock, SHOW_MS, () => {
      evictions.add(this.#accounts.evictions - counted);
      counted = this.#accounts.evictions;
    });
    const told = every(clock, LOG_MS, () => {
      if (this.#limited === 0) return;
      const what = options.reportOnly ? 'would have been limited' : 'were limited';
      log.warning(
        `${this.#limited} replies or queries ${what} in the last minute, most of them for ${this.#offenders.first}`,
      );
      this.#limited = 0;
    });
    context.onStart(() => {
      this.#wildcards = context.find(wildcardNames);
    });
    // Refusals for names that are not served, and errors for messages that are not queries, can be reflected as well.
    if (all) context.judgeDropped(this.#judgeDropped);
    context.onStop(() => {
      told.cancel();
      shown.cancel();
      this.#offenders.close();
    });
  }

  readonly link: Next = (query) => {
    if (!this.#isCounted(query)) return this.#next(query);
    if (this.#zones !== null && !this.#zones.holds(query)) return this.#next(query);
    if (this.#rates[REQUESTS]! > 0 && !this.#allowsQuery(query)) return silence;
    if (!this.#limits) return this.#next(query);
    const reply = this.#next(query);
    return isLater(reply) ? andThen(reply, this.#judge, query.keep()) : this.#judge(reply, query);
  };

  #isCounted({ proto, depth, peer, peerAt, family }: Query): boolean {
    // Over a stream, the client's address is genuine, and the server's own queries have no client.
    if (proto !== 'udp' || depth > 0) return false;
    return this.#exempt === null || !this.#exempt.holds(peer, peerAt, family === 4 ? 4 : 16);
  }

  #allowsQuery(query: Query): boolean {
    const key = this.#key;
    key.readAll(this.#client.read(query).hash, REQUESTS);
    if (this.#accounts.spend(key.high, key.low, this.#rates[REQUESTS]!, this.#now(query)))
      return true;
    this.#note(query, 'request', 'dropped');
    return this.#options.reportOnly;
  }

  readonly #judge = (reply: Reply, query: Query): Reply => {
    if (reply === silence) return reply;
    const kind = classify(reply, query.type);
    const name = categoryOf(reply, kind);
    const category = categories.indexOf(name);
    const rate = this.#rates[category]!;
    const client = this.#client.read(query).hash;
    const now = this.#now(query);
    const accounts = this.#accounts;
    const key = this.#key;
    if (this.#rates[ALL]! > 0) {
      key.readAll(client, ALL);
      if (!accounts.spend(key.high, key.low, this.#rates[ALL]!, now)) {
        this.#note(query, 'all', 'dropped');
        return this.#options.reportOnly ? reply : silence;
      }
    }
    if (rate === 0) return reply;
    key.read(client, category, reply, query, kind, this.#wildcardOf(query, name === 'nodata'));
    if (accounts.spend(key.high, key.low, rate, now)) return reply;
    // A failure has no records to omit, so it would be the same over TCP.
    const slips = name !== 'error' && accounts.slips(this.#options.slip);
    this.#note(query, name, slips ? 'slipped' : 'dropped');
    if (this.#options.reportOnly) return reply;
    return slips ? this.#truncated(query) : silence;
  };

  readonly #judgeDropped = (query: Query, reply: Reply): Reply => {
    if (!this.#isCounted(query)) return reply;
    if (this.#rates[REQUESTS]! > 0 && !this.#allowsQuery(query)) return silence;
    return this.#limits ? this.#judge(reply, query) : reply;
  };

  #wildcardOf(query: Query, isNoData: boolean): number {
    for (const wildcard of this.#wildcards) {
      const at = wildcard(query, isNoData);
      if (at >= 0) return at;
    }
    return -1;
  }

  #truncated(query: Query): Reply {
    const { writer } = this.#context;
    writer.reply(query, FLAG.TC);
    return writer.finish(RCODE.NOERROR, 'rrl').with({ errors: slipped });
  }

  #note(query: Query, category: Category | 'all' | 'request', action: Action): void {
    this.#limited++;
    this.#counted(query.route)[action](category);
    const { bytes, length } = this.#client;
    this.#offenders.add(bytes, 0, length);
  }

  #now(query: Query): number {
    return query.arrived > 0 ? query.arrived : this.#context.clock.now();
  }
}

type Action = 'dropped' | 'slipped';
type Count = Readonly<Record<Action, (category: string) => void>>;

function counters({ metrics }: WorkerContext): (route: Route) => Count {
  const labels = ['server', 'view', 'category'] as const;
  const families = {
    dropped: metrics.counter(
      'ndots_rrl_dropped_total',
      'Replies and queries above the allowances that were not sent or answered.',
      labels,
    ),
    slipped: metrics.counter(
      'ndots_rrl_slipped_total',
      'Replies above the allowances that were sent without records, so that clients retry over TCP.',
      labels,
    ),
  };
  return perRoute(({ server, view }) => {
    const counter = (action: Action): ((category: string) => void) => {
      const made = new Map<string, Counter>();
      return (category) => {
        let found = made.get(category);
        if (found === undefined)
          made.set(category, (found = families[action].with(server, view, category)));
        found.add(1);
      };
    };
    return { dropped: counter('dropped'), slipped: counter('slipped') };
  });
}
