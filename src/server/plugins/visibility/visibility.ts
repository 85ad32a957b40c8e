/** `visibility`: controls which namespaces can resolve each other's names. */
import { andThen, isLater, type Maybe } from '../../base/maybe.ts';
import { zones } from '../../corefile/positions.ts';
import { flag, lines, setting } from '../../corefile/properties.ts';
import { pluginProblem, pluginRemark } from '../../corefile/problems.ts';
import { directive, type Options } from '../../corefile/syntax.ts';
import { choice, integer } from '../../corefile/word-values.ts';
import { TopKeys } from '../../metrics/top-keys.ts';
import { perRoute } from '../../engine/contract/per-route.ts';
import {
  definePlugin,
  type Next,
  type Plugin,
  type WorkerContext,
} from '../../engine/contract/plugin.ts';
import { clientNamespaces, type ClientNamespaces } from '../../engine/contract/ports.ts';
import { writeClusterSoa } from '../../wire/cluster-soa.ts';
import { EDE, FLAG, RCODE, TYPE } from '../../wire/iana.ts';
import { foldName, parseName, suffixAt, type WireName } from '../../wire/name.ts';
import { renamed, type Query } from '../../transport/query.ts';
import type { ExtendedError, Reply } from '../../wire/reply.ts';
import { withQuestion } from '../../wire/requestion.ts';
import { SECTION } from '../../wire/writer.ts';
import { NamespaceNames } from './namespace-names.ts';
import { ClientRules, readRule, UNKNOWN } from './visibility-rules.ts';

const syntax = directive({
  name: 'visibility',
  summary: 'restricts which cluster names a namespace can resolve',
  repeat: 'once',
  args: { zones: zones({ help: 'zones of the cluster' }) },
  properties: {
    rules: lines(['allow', 'deny'], 'from NAMESPACE… to NAMESPACE…', readRule, {
      help: `the first rule that matches the client's and the name's namespaces applies; \`team-*\` means all namespaces that begin with \`team-\`, \`*\` means all, and \`${UNKNOWN}\` means clients that are not pods`,
    }),
    answer: setting('answer', choice('nxdomain', 'refused'), {
      default: 'nxdomain',
      help: 'reply to queries for denied names',
    }),
    ttlSeconds: setting('ttl', integer('SECONDS', { min: 0, max: 3600 }), {
      default: 5,
      help: 'TTL of the NXDOMAIN',
    }),
    reportOnly: flag('report_only', {
      help: 'do not deny anything; only count the queries that would be denied',
    }),
  },
  check: ({ rules }, at) =>
    rules.length > 0
      ? []
      : [
          pluginProblem('visibility', at, 'no rule', {
            remedy: 'Write, for example: deny from team-* to *',
          }),
        ],
  warn: ({ zones: named }, at) =>
    named.includes('.')
      ? [
          pluginRemark(
            'visibility',
            at,
            'the zone is ".", so names like x.default.svc. would match',
            {
              remedy: "List the cluster's zones: visibility cluster.local {",
            },
          ),
        ]
      : [],
});

const UNWATCHED = 'pods are not watched';
/** Private-use types (RFC 6895 section 3.1), for which there are no records. */
const PRIVATE_TYPES = 0xff00;
/** Maximum number of client namespaces for which rules are cached. */
const CLIENTS_MAX = 10_000;

const prohibited: readonly ExtendedError[] = [
  { code: EDE.PROHIBITED, text: "this name's namespace is not visible from the client's" },
];

/**
 * Denies names in namespaces that are not visible to the client's namespace, before any plugin or cache answers them.
 */
export const visibility: Plugin = definePlugin({
  syntax,

  control(_, context) {
    if (!context.has('kubernetes')) {
      context.log.error(
        `this server block does not have kubernetes, so all clients are ${UNKNOWN}`,
      );
    }
    let told = false;
    context.onMessage((message) => {
      if (message !== UNWATCHED || told) return;
      told = true;
      context.log.error(`kubernetes does not have "pods verified", so all clients are ${UNKNOWN}`);
    });
  },

  setup: (options, context, next) => new Visibility(options, context, next).link,
});

class Visibility {
  readonly #options: Options<typeof syntax>;
  readonly #context: WorkerContext;
  readonly #next: Next;
  readonly #zones: readonly WireName[];
  readonly #names: NamespaceNames;
  readonly #byClient = new Map<string, ClientRules>();
  readonly #denied;
  readonly #offenders: TopKeys;
  /** Indexed by route; true if the route leads here. */
  readonly #own: boolean[] = [];
  #clients: ClientNamespaces | null = null;
  #rules: ClientRules;
  readonly #least: ClientRules;

  constructor(options: Options<typeof syntax>, context: WorkerContext, next: Next) {
    this.#options = options;
    this.#context = context;
    this.#next = next;
    this.#zones = options.zones
      .map((zone) => foldName(parseName(zone)))
      .toSorted((a, b) => b.length - a.length);
    this.#names = new NamespaceNames(this.#zones);
    this.#rules = this.#rulesOf('');
    this.#least = new ClientRules(options.rules, null);
    const { metrics, clock } = context;
    const denied = metrics.counter(
      'ndots_visibility_denied_total',
      'Number of queries for names in namespaces that the client is not allowed to see.',
      ['server', 'view'],
    );
    this.#denied = perRoute(({ server, view }) => denied.with(server, view));
    this.#offenders = new TopKeys({
      metrics,
      clock,
      name: 'ndots_visibility_top_namespaces',
      help: 'Recently denied queries, for the ten client namespaces with the most.',
      label: 'namespace',
      width: 63,
      print: (key) => (key.length === 0 ? UNKNOWN : Buffer.from(key).toString('latin1')),
    });
    context.onStart(() => {
      this.#clients = context.find(clientNamespaces)[0] ?? null;
      if (this.#clients?.known === false) context.post(UNWATCHED);
    });
    context.onStop(() => this.#offenders.close());
  }

  readonly link: Next = (query) => {
    // Part of a reply, which is checked as a whole further up the chain.
    if (query.screen === this) return this.#next(query);
    const client = this.#isForAll(query) ? null : (this.#clients?.of(query) ?? '');
    const rules = (this.#rules = this.#rulesOf(client));
    if (!rules.all && this.#mayNotAsk(query)) {
      this.#count(query, client);
      if (!this.#options.reportOnly) return this.#deny(query);
    }
    // A query created here may still be in use by a link that sends further queries based on it.
    const inner = query.owned ? query.copy() : query;
    const before = inner.screen;
    inner.screen = this;
    const reply = this.#next(inner);
    inner.screen = before;
    if (rules.all) return reply;
    if (!isLater(reply)) return this.#judge(reply, query, client);
    return andThen(reply, this.#judgeLater, { query: query.keep(), client });
  };

  #mayNotAsk(query: Query): boolean {
    return this.#names.hides(query.folded, query.nameLength, this.#sees) || this.#isTransfer(query);
  }

  /**
   * True for an internal lookup that is part of another server block's reply. That block may cache the reply for all
   * clients, so the result must not depend on the client. Any link after a cache in this block is also after this link.
   * Names are therefore not checked a second time, unless they have been rewritten since.
   */
  #isForAll({ depth, route, via, screen }: Query): boolean {
    this.#own[route.index] = true;
    if (screen === renamed) return true;
    return depth > 0 && this.#own[via.index] !== true;
  }

  readonly #judgeLater = (reply: Reply, { query, client }: ClientQuery): Maybe<Reply> =>
    this.#judge(reply, query, client);

  #judge(reply: Reply, query: Query, client: string | null): Maybe<Reply> {
    if (reply.bare) return reply;
    this.#rules = this.#rulesOf(client);
    if (!this.#names.hidesAny(reply, this.#sees)) return reply;
    this.#count(query, client);
    if (this.#options.reportOnly) return reply;
    return this.#names.covers(query.folded, query.nameLength)
      ? this.#withoutData(query)
      : this.#deny(query);
  }

  readonly #sees = (bytes: Uint8Array, at: number, length: number): boolean =>
    this.#rules.sees(bytes, at, length);

  #isTransfer({ type, folded, nameLength }: Query): boolean {
    return (type === TYPE.AXFR || type === TYPE.IXFR) && this.#names.covers(folded, nameLength);
  }

  #rulesOf(client: string | null): ClientRules {
    if (client === null) return this.#least;
    let rules = this.#byClient.get(client);
    if (rules === undefined) {
      if (this.#byClient.size >= CLIENTS_MAX) this.#byClient.clear();
      this.#byClient.set(client, (rules = new ClientRules(this.#options.rules, client)));
    }
    return rules;
  }

  #count(query: Query, client: string | null): void {
    this.#denied(query.route).add(1);
    const key = Buffer.from(client ?? '', 'latin1');
    this.#offenders.add(key, 0, key.length);
  }

  #deny(query: Query): Reply {
    const { writer } = this.#context;
    const { answer, ttlSeconds } = this.#options;
    if (answer === 'refused') {
      writer.reply(query, 0);
      return writer.finish(RCODE.REFUSED, 'visibility').with({ errors: prohibited });
    }
    writer.reply(query, FLAG.AA);
    this.#writeSoa(query, ttlSeconds);
    return writer.finish(RCODE.NXDOMAIN, 'visibility').with({ errors: prohibited });
  }

  /**
   * Returns the reply for a visible alias of a hidden name. It equals a reply without data, including serial and TTL.
   * Otherwise, a client that can create aliases could learn whether their targets exist.
   */
  #withoutData(query: Query): Maybe<Reply> {
    // Each queried type is mapped to a different type, and therefore has its own age in the cache.
    const asked = query.asking(query.wireName, PRIVATE_TYPES | (query.type & 0xff));
    asked.screen = this;
    const found = this.#next(asked);
    if (!isLater(found)) return this.#unlessData(found, query);
    return andThen(found, this.#unlessData, query.keep());
  }

  readonly #unlessData = (found: Reply, query: Query): Reply => {
    if (!found.bare && found.rcode === RCODE.NOERROR && found.answers === 0)
      return withQuestion(found, query);
    const { writer } = this.#context;
    writer.reply(query, FLAG.AA);
    this.#writeSoa(query, this.#options.ttlSeconds);
    return writer.finish(RCODE.NOERROR, 'visibility');
  };

  #writeSoa(query: Query, ttl: number): void {
    const { writer } = this.#context;
    const zone =
      this.#zones.find((each) => suffixAt(query.folded, each, query.nameLength) >= 0) ??
      this.#zones[0]!;
    const serial = Math.floor(this.#context.clock.wall() / 1000);
    writeClusterSoa(writer, SECTION.authority, zone, serial, ttl);
  }
}

interface ClientQuery {
  readonly query: Query;
  readonly client: string | null;
}
