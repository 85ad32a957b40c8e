/** Programs that look up one name repeatedly, although they could cache the answer. */
import { typeName } from '../../../server/wire/iana.ts';
import type { NameView } from '../observe/name-view.ts';
import type { Observations } from '../observe/observations.ts';
import { wrong } from '../observe/outcomes.ts';
import { isServer, queriesUpstreams } from '../observe/roles.ts';
import { listed, sentence, share } from '../texts.ts';
import { FELT_SHARE, MIN_MEASURED_QUERIES } from '../thresholds/evidence.ts';
import { REPEATED } from '../thresholds/search.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

export const repeatedQuestion: FindingKind = {
  code: 'ND2021',
  title: 'A program looks up the same name for each request, although its TTL allows caching',
  name: 'lookups that a program could cache',
  inCapture(observed, claims) {
    const { total, names, seconds, slowLookups, lookups } = observed;
    if (total.asked < MIN_MEASURED_QUERIES) return unknown('too few queries');
    const found = names.list
      .filter(
        (view) =>
          !claims.names.has(view.name) &&
          view.outcomes.found >= REPEATED.perSecond * Math.max(seconds, REPEATED.seconds) &&
          ttlOf(view) >= REPEATED.ttl &&
          askersOf(view, observed).length === 1,
      )
      .toSorted((one, other) => other.outcomes.asked - one.outcomes.asked);
    const lookedUp = found.reduce((sum, { outcomes }) => sum + outcomes.asked, 0);
    const searched = found.reduce((sum, view) => sum + stepsOf(view, observed), 0);
    const asked = lookedUp + searched;
    if (asked < REPEATED.share * total.asked)
      return excluded('no program looks up one name constantly');
    const [first] = found as [NameView];
    const client = askersOf(first, observed)[0]!;
    const perSecond = asked / Math.max(1, seconds);
    const factor = asked / lookedUp;
    const isMultiplied = factor >= REPEATED.factor;
    // A server that answers everything at once carries the load well.
    const isFelt =
      wrong(total) >= FELT_SHARE * total.asked || slowLookups >= Math.max(1, FELT_SHARE * lookups);
    return {
      severity: (isFelt || isMultiplied) && perSecond >= REPEATED.costly ? 'warning' : 'info',
      confidence: 0.9,
      seen: [
        sentence(
          `${client} queried ${first.name} ${typeName(first.type)} ${first.outcomes.asked} times (${(first.outcomes.asked / Math.max(1, seconds)).toFixed(0)} a second), although the answer has a TTL of ${ttlOf(first)} s`,
        ),
        sentence(
          `${share(asked, total.asked)} queries are such repeats${searched > 0 ? ' or their search path' : ''}, for ${listed(found.map(({ name }) => name))}`,
        ),
        isMultiplied &&
          `The search path makes ${factor.toFixed(0)} queries of each, ${perSecond.toFixed(0)} a second in total.`,
      ],
      why: 'The program or its runtime does not cache addresses. Go and Node.js look up a name for each new connection, musl and glibc have no cache, and neither has the JVM with networkaddress.cache.ttl=0. Each request waits for DNS, and the DNS pods carry the load.',
      fix: [
        `Keep connections open in ${client} (keep-alive, a connection pool), so that it looks up the name less often.`,
        'Let the runtime cache addresses: networkaddress.cache.ttl (Java), cacheable-lookup or undici with a pool (Node.js), a caching dialer (Go).',
        isMultiplied &&
          `Write the name with a trailing dot (${first.name}) or set ndots: 1 in the pod’s dnsConfig, so that each lookup is one query per type.`,
        'Use a cache on the node (ndots node-cache, NodeLocal DNSCache).',
      ],
      prove: `ndots capture --from-ip ${client} shows ${first.name} again and again`,
      disproved: `several programs share the address ${client}`,
      affected: [client],
      // Programs notice the load only if queries fail or wait.
      ...(isFelt ? {} : { counted: new Map([[client, asked]]) }),
    };
  },
};

/** The queries in which the search path tried this name with other domains, which do not exist. */
function stepsOf({ name, type }: NameView, { names, domains }: Observations): number {
  const domain = domains.domainOf(name) ?? '';
  const stem = name.slice(0, name.length - domain.length);
  return ['', ...domains.all].reduce((sum, each) => {
    const outcomes = each === domain ? undefined : names.get(stem + each, type)?.outcomes;
    return outcomes === undefined || outcomes.found > 0 ? sum : sum + outcomes.nxdomain;
  }, 0);
}

/** The highest TTL in its answers, seconds; 0 if unknown. */
function ttlOf({ sets }: NameView): number {
  return sets?.ttl ?? 0;
}

function askersOf({ lastClients }: NameView, observed: Observations): readonly string[] {
  return lastClients.filter(
    (client) => !isServer(observed, client) && !queriesUpstreams(observed, client),
  );
}
