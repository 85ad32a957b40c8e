/** Pods without a search list, whose short names are queried without a domain. */
import { absoluteName } from '../observe/absolute-name.ts';
import type { SeenLookup } from '../../capture/pair/seen-exchange.ts';
import { RCODE } from '../../../server/wire/iana.ts';
import { isForwarder } from '../observe/roles.ts';
import { listed, sentence } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/** A client keeps querying names of one label, and never appends a domain. */
export const noSearchList: FindingKind = {
  code: 'ND2017',
  title: 'The search list lacks one of the cluster’s domains, so Service names are never completed',
  name: 'an incomplete search list',
  inCapture(observed, claims) {
    if (observed.affected.length === 0) return unknown('no lookup failed');
    // An upstream gets only the last steps of searches.
    if (!observed.clients.list.some(({ wasted }) => wasted > 0))
      return unknown('no client with a search list was seen for comparison');
    const short = observed.affected.filter(isOfOneLabel);
    const found = [...Map.groupBy(short, ({ client }) => client)].flatMap(([client, lookups]) => {
      const own = observed.clients.get(client);
      if (own === undefined || own.wasted > 0 || isForwarder(observed, client)) return [];
      // Browsers query random labels once, to see whether the resolver lies.
      const names = [...Map.groupBy(lookups, ({ name }) => absoluteName(name))].flatMap(
        ([name, all]) => (all.length >= MIN_CASES && !claims.names.has(name) ? name : []),
      );
      return names.length === 0 ? [] : [{ client, names }];
    });
    if (found.length === 0)
      return excluded('clients append a search domain to names of one label, or query none');
    const names = [...new Set(found.flatMap((each) => each.names))];
    const clients = found.map(({ client }) => client);
    const theirs = short.filter(
      ({ client, name }) => clients.includes(client) && names.includes(absoluteName(name)),
    );
    for (const name of names) claims.names.add(name);
    return {
      title: 'A pod has no search list, so short names are not completed and do not exist',
      severity: 'warning',
      confidence: names.length > 1 ? 0.9 : 0.8,
      seen: [
        sentence(
          `${theirs.length} lookups from ${listed(clients)} of names with one label ended in NXDOMAIN: ${listed(names)}`,
        ),
        `${clients.length === 1 ? 'This client' : 'These clients'} never appended a search domain to any name.`,
      ],
      why: 'A resolver completes a name without dots with the domains in the search list. These pods’ resolv.conf has none. They have dnsPolicy None without dnsConfig.searches, or a file of their own. The name goes to the root, which denies it. The cluster’s DNS is not at fault.',
      fix: [
        'Use dnsPolicy: ClusterFirst, or set dnsConfig.searches to NAMESPACE.svc.DOMAIN, svc.DOMAIN and DOMAIN (and options ndots:5).',
        `Or write the full names in the program’s configuration: ${names[0]!.slice(0, -1)}.NAMESPACE.svc.DOMAIN`,
      ],
      prove: 'kubectl exec POD -- cat /etc/resolv.conf shows no search line',
      disproved: 'resolv.conf has a search line (then the program writes a dot at the end)',
      exchanges: theirs.flatMap(({ exchanges }) => exchanges),
      affected: clients,
    };
  },
};

/** True if the only name queried has one label and was denied. */
function isOfOneLabel({ name, candidates, exchanges }: SeenLookup): boolean {
  return (
    absoluteName(name).indexOf('.') === absoluteName(name).length - 1 &&
    candidates.length === 1 &&
    exchanges.length > 0 &&
    exchanges.every(({ rcode }) => rcode === RCODE.NXDOMAIN)
  );
}
