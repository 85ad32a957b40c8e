/** `top`: the busiest clients, the names they query, and their failed queries. */
import { limit } from '../../base/limits.ts';
import { andThen, isLater } from '../../base/maybe.ts';
import { optional } from '../../corefile/positions.ts';
import { setting, zoneList } from '../../corefile/properties.ts';
import { directive, type Options } from '../../corefile/syntax.ts';
import { integer } from '../../corefile/word-values.ts';
import { TopKeys } from '../../metrics/top-keys.ts';
import { ClientPrefix, clientPrefixSettings } from '../../engine/contract/client-prefix.ts';
import {
  definePlugin,
  type Next,
  type Plugin,
  type WorkerContext,
} from '../../engine/contract/plugin.ts';
import { clientNamespaces, type ClientNamespaces } from '../../engine/contract/ports.ts';
import { ZoneMatch } from '../../engine/contract/zone-match.ts';
import { RCODE } from '../../wire/iana.ts';
import { NAME_MAX, printName } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';
import { silence, type Reply } from '../../wire/reply.ts';

/** Number of series per family and worker, which also limits everything derived from it. */
const shownLimit = limit({ default: 10, min: 1, max: 100 });
/**
 * Slots in each sketch. Every key with more than one in this many queries is found. Each name uses 300 bytes, and each
 * client 60.
 */
const countedLimit = limit({ default: 512, min: 32, max: 4096 });

const syntax = directive({
  name: 'top',
  summary: 'provides metrics for the busiest clients, their most-queried names, and failed lookups',
  repeat: 'once',
  args: {
    shown: optional(integer('COUNT', shownLimit), {
      default: shownLimit.default,
      help: 'number of clients or names per metric',
    }),
  },
  properties: {
    counted: setting('track', integer('COUNT', countedLimit), {
      default: countedLimit.default,
      help: 'number of clients and names to count; those with less than 1/COUNT of the queries may be missed',
    }),
    search: zoneList('search', {
      isStrict: true,
      help: "the clients' search domains; queries for nonexistent names under them count as failed search path steps (default cluster.local)",
    }),
    ...clientPrefixSettings(['ipv4_prefix', 'ipv6_prefix'], [32, 128]),
  },
});

/** Counts every external query to its block. If `kubernetes` knows the address, the client is a pod. */
export const top: Plugin = definePlugin({
  syntax,
  operational: true,
  setup: (options, context, next) => new Top(options, context, next).link,
});

class Top {
  readonly #next: Next;
  readonly #client: ClientPrefix;
  readonly #search: ZoneMatch;
  readonly #families: {
    readonly clients: TopKeys;
    readonly deniedClients: TopKeys;
    readonly searchClients: TopKeys;
    readonly names: TopKeys;
    readonly deniedNames: TopKeys;
    readonly failedNames: TopKeys;
  };
  #pods: ClientNamespaces | null = null;

  constructor(options: Options<typeof syntax>, context: WorkerContext, next: Next) {
    const { bits4, bits6, search, shown, counted } = options;
    const { metrics, clock } = context;
    this.#next = next;
    this.#client = new ClientPrefix(bits4, bits6);
    this.#search = new ZoneMatch(search === null || search.length === 0 ? usual : search);
    const about = { labels: ['namespace', 'pod'], of: this.#podOf };
    const { print } = this.#client;
    const parts = { metrics, clock, shown, counted };
    const clients = (name: string, help: string): TopKeys =>
      new TopKeys({ ...parts, name, help, label: 'client', width: 16, print, about });
    const names = (name: string, help: string): TopKeys =>
      new TopKeys({ ...parts, name, help, label: 'name', width: NAME_MAX, print: printName });
    this.#families = {
      clients: clients('ndots_top_clients', 'Recent queries, for the busiest clients.'),
      deniedClients: clients(
        'ndots_top_nxdomain_clients',
        'Recent queries for nonexistent names, for the clients with the most.',
      ),
      searchClients: clients(
        'ndots_top_search_clients',
        'Recent queries for nonexistent names under a search domain, for the clients with the most.',
      ),
      names: names('ndots_top_names', 'Recent queries, for the most-queried names.'),
      deniedNames: names(
        'ndots_top_nxdomain_names',
        'Recent queries for nonexistent names, for the most-queried names.',
      ),
      failedNames: names(
        'ndots_top_failed_names',
        'Recent queries that got SERVFAIL or another failure, for the names with the most.',
      ),
    };
    context.onStart(() => {
      // A network is not a pod.
      if (bits4 === 32 && bits6 === 128) this.#pods = context.find(clientNamespaces)[0] ?? null;
    });
    context.onStop(() => {
      for (const family of Object.values(this.#families)) family.close();
    });
  }

  readonly link: Next = (query) => {
    // An internal lookup is not made by a client.
    if (query.depth > 0 || query.proto === 'internal') return this.#next(query);
    const { clients, names } = this.#families;
    const { bytes, length, hash } = this.#client.read(query);
    clients.addHashed(hash, bytes, 0, length);
    names.addHashed(query.hash, query.folded, 0, query.nameLength);
    const reply = this.#next(query);
    if (isLater(reply)) return andThen(reply, this.#judge, query.keep());
    return reply.rcode === RCODE.NOERROR ? reply : this.#judge(reply, query);
  };

  readonly #judge = (reply: Reply, query: Query): Reply => {
    const { rcode } = reply;
    if (rcode === RCODE.NOERROR || reply === silence) return reply;
    const { deniedClients, searchClients, deniedNames, failedNames } = this.#families;
    const { folded, nameLength } = query;
    if (rcode !== RCODE.NXDOMAIN) {
      failedNames.addHashed(query.hash, folded, 0, nameLength);
      return reply;
    }
    const { bytes, length, hash } = this.#client.read(query);
    deniedNames.addHashed(query.hash, folded, 0, nameLength);
    deniedClients.addHashed(hash, bytes, 0, length);
    if (this.#search.holds(query)) searchClients.addHashed(hash, bytes, 0, length);
    return reply;
  };

  readonly #podOf = (address: Uint8Array): readonly string[] => {
    if (this.#pods === null) return unknown;
    const { namespace, name } = this.#pods.pod(address);
    return [namespace, name];
  };
}

const usual = ['cluster.local.'];
const unknown = ['', ''];
