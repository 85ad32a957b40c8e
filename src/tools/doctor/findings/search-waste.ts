/** The cost of search paths, which create queries for names that do not exist. */
import { servers, total, trafficOf } from '../cluster/traffic.ts';
import type { SearchDomains } from '../../capture/pair/search-walk.ts';
import { excluded, unknown, type FindingKind, unread, quiet } from './finding.ts';
import { listed, percent, share } from '../texts.ts';
import type { ClientView } from '../observe/client-view.ts';
import { COSTLY_SHARE, MIN_MEASURED_QUERIES, MOST } from '../thresholds/evidence.ts';
import {
  MIN_SEARCH_LOOKUPS,
  MIN_WASTED_QUERIES,
  WASTED_SHARE_OF_CUT,
} from '../thresholds/search.ts';

/** @param how the part of the queries that cannot succeed */
function titleFor(how: 'Most' | 'Many'): string {
  return `${how} queries cannot succeed because the search path creates names that do not exist`;
}

export const searchWaste: FindingKind = {
  code: 'ND2001',
  title: titleFor('Most'),
  name: 'a costly search path',
  inCapture({ wasted, total, cutNames, lookups, names, domains, clients }) {
    if (lookups < MIN_SEARCH_LOOKUPS) return unknown('too few lookups');
    const whole = total.asked - cutNames;
    const isOfMost = wasted >= COSTLY_SHARE * total.asked;
    const isOfWhole =
      wasted >= COSTLY_SHARE * whole && total.nxdomain >= WASTED_SHARE_OF_CUT * total.asked;
    if (wasted < MIN_WASTED_QUERIES || !(isOfMost || isOfWhole))
      return excluded(`${percent(wasted, total.asked)} of the queries are search-path steps`);
    const made = names.list.filter(
      ({ name, outcomes }) => outcomes.nxdomain > 0 && domains.domainOf(name) !== null,
    );
    const top = made.toSorted((one, other) => other.outcomes.nxdomain - one.outcomes.nxdomain);
    const stems = new Set(top.slice(0, 20).map(({ name }) => stemOf(name, domains)));
    return {
      title: titleFor(wasted > whole / 2 ? 'Most' : 'Many'),
      severity: 'info',
      confidence: isOfMost ? 1 : 0.8,
      seen: [
        isOfMost
          ? `${share(wasted, total.asked)} queries were for a name with a search domain appended that did not exist.${busiestText(clients.list, wasted)}`
          : `Of ${whole} queries with complete names, ${percent(wasted, whole)} were for a name with a search domain appended that did not exist. For ${cutNames} other queries, the capture contains only the beginning of the name. Of all ${total.asked} queries, ${percent(total.nxdomain, total.asked)} were for names that do not exist.`,
        `These queries had the following search domains appended: ${listed(
          [...domains.all].filter((domain) => domain.split('.').length > 2),
          6,
        )}`,
        `The most frequent names are ${listed([...stems], 5)}`,
      ],
      why: 'With ndots:5, which Kubernetes sets, a name with fewer than five dots is first tried with every search domain appended, for IPv4 and IPv6. For example, api.example.com takes eight to ten queries, of which two can succeed. This is harmless while DNS works, but it multiplies every fault.',
      fix: [
        'Write external names with a trailing dot (api.example.com.) where the program allows it, which takes two queries.',
        'Set dnsConfig: options: [{name: ndots, value: "2"}] for pods that mostly look up external names. Service names with two or more dots (redis.cache.svc) are then tried as written first, and musl (Alpine) stops at the NXDOMAIN.',
        'Use autopath @name in the Corefile (ndots), which answers the first step with the last one’s answer.',
      ],
      prove: `ndots trace ${[...stems][0] ?? 'api.example.com'} --client all --plan`,
      disproved: '',
      counted: new Map(
        clients.list.flatMap((client) =>
          client.wasted > 0 ? [[client.address, client.wasted] as const] : [],
        ),
      ),
    };
  },
  inCluster(facts) {
    if (servers(facts).length === 0) return unread;
    const replies = total(facts, 'coredns_dns_responses_total');
    const missing = total(
      facts,
      'coredns_dns_responses_total',
      ({ rcode }) => rcode === 'NXDOMAIN',
    );
    if (replies < MIN_MEASURED_QUERIES) return quiet;
    if (missing < 0.5 * replies)
      return excluded(`${percent(missing, replies)} of the replies are NXDOMAIN`);
    const traffic = trafficOf(facts)!;
    return {
      severity: 'info',
      confidence: 0.8,
      seen: [
        `${share(missing, replies)} replies were NXDOMAIN, at ${traffic.perSecond.toFixed(0)} queries a second.`,
      ],
      affected: ['all pods that look up names outside the cluster'],
      why: 'With ndots:5, a name with fewer dots is first tried with each search domain appended, for A and AAAA. That takes eight to ten queries, of which two can succeed.',
      fix: [
        'For pods that look up external names, use trailing dots, or set ndots 2 in dnsConfig (ndots webhook does this by annotation).',
        'Use autopath @name (ndots), which answers the first query with the result of the last one.',
      ],
      prove: 'ndots capture -i any --for 60s on a node shows the names and their clients',
      disproved: 'the queried names do not exist at all (then a program is misconfigured)',
    };
  },
};

/** Names the client that sent (nearly) all of these queries, if there are others. */
function busiestText(clients: readonly ClientView[], wasted: number): string {
  const [busiest] = clients.toSorted((one, other) => other.wasted - one.wasted);
  if (clients.length < 2 || busiest === undefined || busiest.wasted < MOST * wasted) return '';
  return ` ${busiest.address} sent ${percent(busiest.wasted, wasted)} of them.`;
}

function stemOf(name: string, domains: SearchDomains): string {
  return name.slice(0, name.length - (domains.domainOf(name)?.length ?? 0) - 1);
}
