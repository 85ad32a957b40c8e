/** `autopath`: the directive and how it is set up in both planes. */
import { whyFailed } from '../../base/why-failed.ts';
import { FILE_MAX, readFileText } from '../../base/read-file.ts';
import { Problem } from '../../base/problem.ts';
import type { NamedFiles } from '../../engine/contract/named-files.ts';
import { definePlugin, type Plugin, type WorkerContext } from '../../engine/contract/plugin.ts';
import { searchDomains, searchLists, type ClientSearchPaths } from '../../engine/contract/ports.ts';
import { ZoneMatch } from '../../engine/contract/zone-match.ts';
import type { WireName } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';
import { Completion } from './completion.ts';
import { BY_NAME, syntax, type AutopathOptions } from './autopath-options.ts';
import { PairMemory } from './pair-memory.ts';
import { ownResolvConf, searchListOf, wireNames } from './resolv-conf.ts';
import { fixedPath, offeredPath, type SearchPath } from './search-path.ts';
import { perRoute } from '../../engine/contract/per-route.ts';

/** The plugin that uses the same search path for every client. */
const LISTED = 'erratic';
const UNWATCHED = 'pods are not watched';

/**
 * Completes names on the server with the client's search path. `api.example.com.default.svc.cluster.local` gets the
 * records of `api.example.com`, so the client needs no further attempts.
 */
export const autopath: Plugin = definePlugin({
  syntax,

  control({ from, at }, context) {
    const { log } = context;
    let told = false;
    context.onMessage((message) => {
      if (message !== UNWATCHED || told) return;
      told = true;
      log.warning(
        'clients cannot be identified by address without "pods verified" in kubernetes, so nothing is completed; ' +
          'write "pods verified" there, or "autopath @name" here, which does not need pods',
      );
    });
    const place = { place: at };
    if (!from.startsWith('@')) {
      readable(context, from, place);
      return;
    }
    const plugin = pluginOf(from);
    if (!context.has(plugin)) {
      log.warning(
        `"${from}" needs the ${plugin} plugin in the same server block, so nothing is completed`,
      );
    } else if (plugin !== 'kubernetes' && plugin !== LISTED) {
      throw new Problem({
        code: 'autopath-source',
        text: `plugin/autopath: ${plugin} does not implement the AutoPather interface`,
        ...place,
        hint: 'Search paths come from kubernetes: @kubernetes (by client) or @name (by the queried name).',
      });
    }
  },

  setup(options, context, next) {
    const here = new ZoneMatch(options.zones);
    const own = new ZoneMatch(context.zones);
    const completion = new Completion({
      path: pathOf(options, context),
      pairs: new PairMemory(context.clock),
      next,
      elsewhere: context.ask,
      isHere: (query) => own.holds(query),
      succeeded: successes(context),
    });
    // Resolvers use only standard queries when they walk their search path.
    return (query) =>
      query.isStandard && here.holds(query) ? completion.answer(query) : next(query);
  },
});

function pathOf(options: AutopathOptions, context: WorkerContext): SearchPath {
  const { from } = options;
  if (!from.startsWith('@')) return fixedPath(searchListOf(context.file(from).toString('utf8')));
  const by = from === BY_NAME ? 'byName' : 'byClient';
  const plugin = pluginOf(from);
  if (plugin === LISTED) return listedPath(context);
  let offered: ClientSearchPaths | null = null;
  context.onStart(() => {
    offered = context.find(searchDomains).find((one) => one.plugin === plugin) ?? null;
    if (offered !== null && by === 'byClient' && !offered.knowsClients) context.post(UNWATCHED);
  });
  return offeredPath(() => offered, by, moreDomains(options));
}

function listedPath(context: WorkerContext): SearchPath {
  let path = fixedPath([]);
  context.onStart(() => {
    const found = context.find(searchLists).find((one) => one.plugin === LISTED);
    if (found !== undefined) path = fixedPath(wireNames(found.domains));
  });
  return {
    begin: (query) => path.begin(query),
    get length() {
      return path.length;
    },
    suffix: (query, begin, index, into) => path.suffix(query, begin, index, into),
  };
}

/** Returns the plugin named by `@name` or `@PLUGIN`. */
function pluginOf(from: string): string {
  return from === BY_NAME ? 'kubernetes' : from.slice(1);
}

/** Returns the search domains to try after the cluster's own. */
function moreDomains({ search }: AutopathOptions): readonly WireName[] {
  if (search.length > 0) return wireNames(search);
  try {
    return searchListOf(readFileText(ownResolvConf, FILE_MAX.small));
  } catch {
    // If the container has no such file, there are no additional search domains.
    return [];
  }
}

function readable(
  files: NamedFiles,
  written: string,
  place: { readonly place: Problem['place'] & object },
): void {
  try {
    files.file(written);
  } catch (error) {
    throw new Problem({
      code: 'autopath-resolv-conf',
      text: `plugin/autopath: failed to parse ${JSON.stringify(written)}: ${whyFailed(error)}`,
      ...place,
      hint: 'The last word of autopath must be @name, @kubernetes, or a file in resolv.conf format.',
      cause: error,
    });
  }
}

/** Counts successes per listen address, which is the `server` label. */
function successes({ metrics }: WorkerContext): (query: Query) => void {
  const family = metrics.counter(
    'coredns_autopath_success_total',
    'Counter of requests that did autopath.',
    ['server'],
  );
  const counterOf = perRoute(({ server }) => family.with(server));
  return (query) => counterOf(query.route).add(1);
}
