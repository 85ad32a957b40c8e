/** `fairqueue`: shares in-flight queries fairly among clients. */
import { limit } from '../../base/limits.ts';
import { andThen, isLater, orElse, whenSettled } from '../../base/maybe.ts';
import { flag, setting } from '../../corefile/properties.ts';
import { directive, type Options } from '../../corefile/syntax.ts';
import { choice, integer } from '../../corefile/word-values.ts';
import type { Gauge } from '../../metrics/registry.ts';
import { TopKeys } from '../../metrics/top-keys.ts';
import { ClientPrefix, clientPrefixSettings } from '../../engine/contract/client-prefix.ts';
import { perRoute } from '../../engine/contract/per-route.ts';
import {
  definePlugin,
  type Next,
  type Plugin,
  type WorkerContext,
} from '../../engine/contract/plugin.ts';
import { clientNamespaces, type ClientNamespaces } from '../../engine/contract/ports.ts';
import { EDE, RCODE } from '../../wire/iana.ts';
import type { Query } from '../../transport/query.ts';
import { failure, overloaded, type Reply } from '../../wire/reply.ts';
import { Shares, type Share } from './shares.ts';

/** Half of forward's limit, which leaves room for others while one client uses all of its places. */
const concurrentLimit = limit({ default: 8192, min: 8, max: 1_000_000 });

const syntax = directive({
  name: 'fairqueue',
  summary: 'divides the capacity for in-flight queries fairly among clients',
  repeat: 'once',
  properties: {
    concurrent: setting('concurrent', integer('COUNT', concurrentLimit), {
      default: concurrentLimit.default,
      help: 'maximum number of in-flight queries for a single client while no other client has any',
    }),
    by: setting('by', choice('client', 'namespace'), {
      default: 'client',
      help: "what counts as one client: an address or a pod's namespace; `namespace` requires `pods verified` in kubernetes, and clients without a namespace are identified by address",
    }),
    ...clientPrefixSettings(['ipv4_prefix', 'ipv6_prefix'], [32, 128]),
    network4: setting('ipv4_network', integer('LENGTH', { min: 1, max: 32 }), {
      default: 24,
      help: 'prefix length of IPv4 networks; each network has its own limit',
    }),
    network6: setting('ipv6_network', integer('LENGTH', { min: 1, max: 128 }), {
      default: 64,
      help: 'prefix length of IPv6 networks; each network has its own limit',
    }),
    reportOnly: flag('report_only', {
      help: 'only count queries that would be refused, without refusing any',
    }),
  },
});

/** Prefix of the namespace keys from `kubernetes`, which no address starts with. */
const NAMESPACE = 'namespace/';
const UNWATCHED = 'pods are not watched';

const refused: Reply = failure(RCODE.REFUSED, 'fairqueue', null, [
  {
    code: EDE.OTHER,
    text: 'too many in-flight queries from this client or its network',
  },
]);

/** Restricts clients that have many waiting queries to those that can be answered immediately. */
export const fairqueue: Plugin = definePlugin({
  syntax,

  control({ by }, context) {
    if (by !== 'namespace') return;
    let told = false;
    context.onMessage((message) => {
      if (message !== UNWATCHED || told) return;
      told = true;
      context.log.warning(
        'the namespaces of clients are unknown without "pods verified" in kubernetes in the same server block; using addresses instead',
      );
    });
  },

  setup: (options, context, next) => new FairQueue(options, context, next).link,
});

class FairQueue {
  readonly #options: Options<typeof syntax>;
  readonly #next: Next;
  readonly #shares: Shares;
  readonly #client: ClientPrefix;
  readonly #network: ClientPrefix;
  readonly #waiting: Gauge;
  readonly #clients: Gauge;
  readonly #refused;
  readonly #offenders: TopKeys;
  #namespaces: ClientNamespaces | null = null;

  constructor(options: Options<typeof syntax>, context: WorkerContext, next: Next) {
    const { metrics, clock } = context;
    this.#options = options;
    this.#next = next;
    this.#shares = new Shares(options.concurrent, clock);
    this.#client = new ClientPrefix(options.bits4, options.bits6);
    // Each client belongs to exactly one network, even if the client itself is a larger prefix.
    this.#network = new ClientPrefix(
      Math.min(options.network4, options.bits4),
      Math.min(options.network6, options.bits6),
    );
    this.#waiting = metrics.gauge('ndots_fairqueue_waiting', 'In-flight queries.');
    this.#clients = metrics.gauge('ndots_fairqueue_clients', 'Clients with an in-flight query.');
    const refusals = metrics.counter(
      'ndots_fairqueue_refused_total',
      'Queries refused because too many from the same client or network were in flight.',
      ['server', 'view'],
    );
    this.#refused = perRoute(({ server, view }) => refusals.with(server, view));
    this.#offenders = new TopKeys({
      metrics,
      clock,
      name: 'ndots_fairqueue_top_clients',
      help: 'Recently refused queries, for the ten clients with the most refusals.',
      label: 'client',
      width: NAMESPACE.length + 63,
      print: (key) => Buffer.from(key).toString('latin1'),
    });
    context.onStart(() => {
      if (options.by !== 'namespace') return;
      this.#namespaces = context.find(clientNamespaces)[0] ?? null;
      if (this.#namespaces?.known !== true) context.post(UNWATCHED);
    });
    context.onStop(() => this.#offenders.close());
  }

  readonly link: Next = (query) => {
    // An internal lookup waits as part of the client's query.
    if (query.depth > 0 || query.proto === 'internal') return this.#next(query);
    const offender = this.#shares.matters && query.mayWait ? this.#offenderOf(query) : '';
    if (offender !== '') {
      if (!this.#options.reportOnly) return this.#answerNow(query, offender);
      this.#count(query, offender);
    }
    const reply = this.#next(query);
    if (!isLater(reply)) return reply;
    const namespace = this.#namespaceOf(query);
    const share =
      namespace === ''
        ? this.#shares.enter(addressOf(this.#client, query), addressOf(this.#network, query))
        : this.#shares.enter(namespace, '');
    this.#show();
    return orElse(andThen(reply, this.#over, share) as typeof reply, this.#failed, share);
  };

  /** Returns the answer that is available without waiting. */
  #answerNow(query: Query, offender: string): Reply {
    query.mayWait = false;
    const reply = this.#next(query);
    query.mayWait = true;
    if (isLater(reply)) {
      // The link waits anyway, and its reply is discarded.
      whenSettled(reply, ignore, ignore, null);
    } else if (reply.errors !== overloaded.errors) return reply;
    this.#count(query, offender);
    return refused;
  }

  readonly #over = (reply: Reply, share: Share): Reply => {
    this.#shares.leave(share);
    this.#show();
    return reply;
  };

  readonly #failed = (error: unknown, share: Share): never => {
    this.#shares.leave(share);
    this.#show();
    throw error;
  };

  #show(): void {
    this.#waiting.set(this.#shares.waiting);
    this.#clients.set(this.#shares.clients);
  }

  #count(query: Query, offender: string): void {
    this.#refused(query.route).add(1);
    const key = Buffer.from(offender, 'latin1');
    this.#offenders.add(key, 0, key.length);
  }

  /** Returns the client or network that has too many waiting queries to admit another one, or an empty string. */
  #offenderOf(query: Query): string {
    const namespace = this.#namespaceOf(query);
    if (namespace !== '') return this.#shares.judge(namespace, '') === 'admitted' ? '' : namespace;
    const client = addressOf(this.#client, query);
    const network = addressOf(this.#network, query);
    const found = this.#shares.judge(client, network);
    return found === 'admitted' ? '' : found === 'client' ? client : network;
  }

  #namespaceOf(query: Query): string {
    const namespace = this.#namespaces?.of(query) ?? '';
    return namespace === '' ? '' : NAMESPACE + namespace;
  }
}

function addressOf(prefix: ClientPrefix, query: Query): string {
  const { bytes, length } = prefix.read(query);
  return prefix.print(bytes.subarray(0, length));
}

function ignore(): void {}
