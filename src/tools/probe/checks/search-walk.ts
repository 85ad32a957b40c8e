/**
 * Looks up a name as applications write it, in the way that each C library and Go do. All must get the same result. The
 * number of queries is reported.
 */
import { didYouMean } from '../../../server/base/problem.ts';
import { clientLabels, findClient, labelOf } from '../../resolver/clients.ts';
import type { Client } from '../../resolver/client.ts';
import { brief, serverText } from '../probe-queries.ts';
import { checkKind, type Observation, type CheckKind } from '../check.ts';
import {
  described,
  keyOf,
  optional,
  required,
  whole,
  word,
  type YamlShape,
} from '../../../server/kube/manifests/yaml-shape.ts';
import { several, spelledName } from '../parameters.ts';

const client: YamlShape<Client> = {
  placeholder: 'CLIENT',
  read(value, path, reading) {
    const found = typeof value === 'string' ? findClient(value) : null;
    if (found !== null) return found;
    reading.tell(
      path,
      `"${keyOf(path)}" accepts clients such as glibc, musl or go, not ${described(value)}`,
      didYouMean(String(value), clientLabels),
    );
    return usual[0]!;
  },
};

const usual = ['glibc', 'musl', 'go'].map((label) => findClient(label)!);

export const searchWalk: CheckKind = checkKind({
  name: 'search-walk',
  summary: 'glibc, musl and Go find a name through the search path',
  needs: 'any',
  parameters: {
    name: required(
      spelledName,
      'the name as applications write it: api, redis.cache, www.example.com',
    ),
    clients: optional(several(client), usual, 'whose resolvers'),
    mostQueries: optional(whole(1, 1000), 1000, 'more queries are a warning'),
    at: optional(word(['vip', 'replicas']), 'vip', 'whether to query each replica separately'),
  },
  async run({ name, clients, mostQueries, at }, context) {
    const servers = at === 'vip' ? context.vip.slice(0, 1) : context.replicas;
    const pairs = servers.flatMap((server) => clients.map((each) => [each, server] as const));
    const found: Observation[] = [];
    for (const [each, server] of pairs) {
      const run = await context.network.lookup(each, name, server, context);
      const [result] = run.results;
      const { exchanges } = run.trace;
      const lost = exchanges.filter(({ answeredAtMs }) => answeredAtMs === null).length;
      const names = new Set(exchanges.map((exchange) => exchange.name.toLowerCase())).size;
      const slow = exchanges
        .filter(({ answeredAtMs }) => answeredAtMs !== null)
        .map((exchange) => ({ name: exchange.name, ms: exchange.answeredAtMs! - exchange.atMs }))
        .toSorted((a, b) => b.ms - a.ms)[0];
      const walked = `${exchanges.length} ${exchanges.length === 1 ? 'query' : 'queries'} for ${names} ${names === 1 ? 'name' : 'names'}`;
      const failure = result?.found.failure ?? null;
      const many = exchanges.length > mostQueries;
      found.push({
        target: at === 'vip' ? labelOf(each) : `${serverText(server)} ${labelOf(each)}`,
        state: failure !== null ? 'failed' : many || lost > 0 ? 'warning' : 'ok',
        text:
          failure === null
            ? `${name} is ${brief(result!.found.addresses)} after ${walked}${many ? ` (mostQueries ${mostQueries})` : ''}${slow === undefined ? '' : `, the slowest ${slow.name} ${slow.ms.toFixed(1)} ms`}`
            : `${name}: ${failure.text} (${failure.code}) after ${walked}`,
        tookMs: result?.elapsedMs ?? null,
        sent: exchanges.length,
        lost,
      });
    }
    return found;
  },
});
