/** A search list that begins with a namespace in which no service exists. */
import { isBelow } from '../../../server/wire/within-zone.ts';
import type { Observations } from '../observe/observations.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { listed, sentence } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { MIN_REPLIES_OF_KIND } from '../thresholds/search.ts';

/** The search domain of a namespace. */
const NAMESPACE = /^([^.]+)\.svc\./;

export const wrongNamespace: FindingKind = {
  code: 'ND2014',
  title: 'Short Service names never resolve because the search list has the wrong namespace',
  name: 'a wrong namespace in the search list',
  inCapture(observed, claims) {
    const domains = [...observed.domains.all].filter((domain) => NAMESPACE.test(domain));
    if (domains.length === 0) return unknown('no namespace’s search domain was seen');
    for (const domain of domains) {
      const names = shortNames(observed, domain);
      const found = observed.names.list.filter(({ outcomes }) => outcomes.found > 0);
      if (names.length < MIN_CASES || found.length < MIN_CASES) continue;
      if (names.some((name) => claims.names.has(name + domain))) continue;
      for (const name of names) {
        claims.names.add(name);
        for (const each of observed.domains.all) claims.names.add(name + each);
      }
      const [, namespace] = NAMESPACE.exec(domain) as unknown as [string, string];
      const exchanges = observed.affectedExchanges(({ name }) => isBelow(name, domain));
      return {
        severity: 'critical',
        confidence: 0.88,
        seen: [
          sentence(
            `${names.length} single-label names never resolved under any search domain. They are ${listed(names)}`,
          ),
          `No name at all was found under ${domain}, the first search domain, while ${found.length} other names were found.`,
        ],
        why: `The search list of these pods begins with the namespace ${namespace}, which has no Services with these names. Either the list is wrong (dnsConfig.searches, or dnsPolicy None with a copied list), or the pods were started in a different namespace from their Services.`,
        fix: [
          `Find the namespace that has these Services with kubectl get services -A | grep -w ${names[0]!.slice(0, -1)}, and use it in the search list instead of ${namespace}.`,
          'Or remove dnsConfig.searches, since dnsPolicy ClusterFirst uses the pod’s namespace.',
          'Or write names with their namespace (NAME.NAMESPACE).',
        ],
        prove: `run kubectl get service -A | grep -w ${names[0]!.slice(0, -1)}, then ndots query ${names[0]!}OTHER-NAMESPACE.svc.cluster.local`,
        disproved: 'no namespace has Services with these names (then they do not exist at all)',
        exchanges,
        affected: names.map((name) => name + domain),
      };
    }
    return excluded('short names exist in the namespace of the search list');
  },
};

/** Single-label names that were queried there and never exist; empty if one exists there. */
function shortNames({ names, failedLookups }: Observations, domain: string): readonly string[] {
  const stems = new Set<string>();
  for (const { name, outcomes } of names.list) {
    if (!isBelow(name, domain)) continue;
    if (outcomes.found + outcomes.nodata > 0) return [];
    const stem = name.slice(0, -domain.length);
    if (stem.indexOf('.') === stem.length - 1) stems.add(stem);
  }
  const lookups = [...stems].map((stem) => [stem, failedLookups.names.get(stem)] as const);
  // One that resolves by another search domain needs none of this namespace.
  return lookups.flatMap(([stem, of]) =>
    of !== undefined && of.failed >= MIN_REPLIES_OF_KIND && of.found === 0 ? stem : [],
  );
}
