/** Search lists that lack one of the cluster’s three domains. */
import { absoluteName } from '../observe/absolute-name.ts';
import type { SeenLookup } from '../../capture/pair/seen-exchange.ts';
import { addressTypes } from '../../../server/wire/iana.ts';
import type { Observations } from '../observe/observations.ts';
import { keysOf, listed } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { MIN_FAILED_LOOKUPS } from '../thresholds/search.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/** A namespace’s search domain, and the cluster domain. */
const OF_NAMESPACE = /^[^.]+\.svc\.(.+)$/;

/** Names of other namespaces are never tried with `svc.cluster.local`. */
export const missingSearchDomain: FindingKind = {
  code: 'ND2017',
  title: 'The search list lacks one of the cluster’s domains, so Service names are never completed',
  name: 'an incomplete search list',
  inCapture(observed, claims) {
    if (observed.domains.all.size === 0) return unknown('no search path was seen');
    const failed = observed.affected.filter(
      ({ name, exchanges }) =>
        !claims.names.has(absoluteName(name)) && !exchanges.some(({ answers }) => answers > 0),
    );
    const walks = failed.flatMap((lookup) => {
      const missing = missingFrom(lookup);
      // If the domain denies the name, the list contains it, and another DNS pod got that query.
      if (missing === null || isDenied(observed, absoluteName(lookup.name) + missing)) return [];
      return { lookup, missing };
    });
    const names = keysOf(walks, ({ lookup }) => absoluteName(lookup.name));
    if (walks.length < MIN_FAILED_LOOKUPS || names.length < 2)
      return excluded('failed lookups tried all three of the cluster’s domains, or none');
    const [missing] = keysOf(walks, (each) => each.missing) as [string];
    const clients = keysOf(walks, ({ lookup }) => lookup.client);
    const elsewhere = names.filter((name) => isFound(observed, name + missing));
    if (names.length < MIN_CASES && elsewhere.length === 0)
      return excluded('too few names fail to distinguish a short search list from missing names');
    for (const name of names) claims.names.add(name);
    return {
      severity: 'critical',
      confidence: elsewhere.length > 0 ? 0.95 : 0.88,
      seen: [
        `${walks.length} lookups from ${listed(clients)} tried the cluster’s other domains but never ${missing} for ${listed(names)}`,
        elsewhere.length > 0 &&
          `Another client queries ${listed(elsewhere.map((name) => name + missing))} and gets an answer.`,
      ],
      why: `A pod’s search list is NAMESPACE.svc.DOMAIN, svc.DOMAIN and DOMAIN. Here, ${missing} is missing (dnsConfig with dnsPolicy None, or a copied resolv.conf). Such names are therefore tried only in domains where they do not exist.`,
      fix: [
        `Add ${missing} to these pods’ dnsConfig.searches, or use dnsPolicy: ClusterFirst.`,
        `Until then, use the full name: ${names[0]}${missing}`,
      ],
      prove: `run kubectl exec POD -- cat /etc/resolv.conf, then ndots query ${names[0]}${missing}`,
      disproved: `${names[0]}${missing} does not exist either`,
      exchanges: walks.flatMap(({ lookup }) => lookup.exchanges),
    };
  },
};

/** The domain that the search for a Service name skipped, or null. */
function missingFrom({ name: typed, candidates }: SeenLookup): string | null {
  const name = absoluteName(typed);
  const rests = candidates.flatMap((each) =>
    each.length > name.length && each.startsWith(name) ? each.slice(name.length) : [],
  );
  const labels = name.split('.').length - 1;
  const ofNamespace = rests.find((rest) => OF_NAMESPACE.test(rest));
  const cluster = OF_NAMESPACE.exec(ofNamespace ?? '')?.[1];
  // `db.shop.` needs the domain of Services.
  if (labels !== 2 || cluster === undefined) return null;
  return rests.includes(cluster) && !rests.includes(`svc.${cluster}`) ? `svc.${cluster}` : null;
}

function isDenied({ names }: Observations, name: string): boolean {
  const outcomes = addressTypes.flatMap((type) => names.get(name, type)?.outcomes ?? []);
  return outcomes.some(({ nxdomain }) => nxdomain > 0) && !outcomes.some(({ found }) => found > 0);
}

function isFound({ names }: Observations, name: string): boolean {
  return addressTypes.some((type) => (names.get(name, type)?.outcomes.found ?? 0) > 0);
}
