/** A cache that stores for long that a Service does not exist. */
import type { NameView } from '../observe/name-view.ts';
import type { Observations } from '../observe/observations.ts';
import type { Claims } from '../observe/claims.ts';
import { countdown, countsDown } from '../observe/remembered-denial.ts';
import { TYPE } from '../../../server/wire/iana.ts';
import { listed } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { LONG_DENIAL_S } from '../thresholds/search.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/** Label of Services in the cluster's domain. */
const SERVICES = 'svc.';

/** A Service's name is denied from a cache entry that lasts far longer than the cluster's own denials. */
export const longDenial: FindingKind = {
  code: 'ND8003',
  title: 'A new name stays invisible because its absence is cached',
  name: 'a cached "no such name"',
  inCapture(observed, claims) {
    const denied = deniedServices(observed, claims);
    const [one] = denied;
    if (one === undefined)
      return observed.names.list.some(({ negativeTtls }) => negativeTtls.length >= MIN_CASES)
        ? excluded('no denial of a Service counts down from a long TTL')
        : unknown('no missing name was queried repeatedly');
    const { name, negativeTtls, longestTtl } = one;
    const names = [...new Set(denied.map((view) => view.name))];
    for (const each of names) claims.names.add(each);
    const shown = countdown(negativeTtls);
    const { server } = shown[0]!;
    const ttls = shown.map(({ ttl }) => ttl).slice(0, MIN_CASES + 2);
    return {
      title: 'A cache stores for too long that a Service does not exist',
      severity: 'warning',
      confidence: 0.85,
      seen: [
        `For ${listed(names)}, ${server} always returned NXDOMAIN, with a TTL that counts down (${ttls.join(', ')}). The replies come from one cache entry that was never renewed.`,
        `The longest TTL was ${longestTtl} s. CoreDNS gives denials in the cluster’s domain 5 s to 30 s.`,
      ],
      why: `${server} may return this denial for ${longestTtl} s. If the Service was created after the first query, its clients do not find it during that time, although the cluster’s DNS has it. The TTL comes from the SOA record of the zone (its minimum) or from the denial setting of the cache.`,
      fix: [
        `Query the name at a DNS pod directly. If that has it, restart ${server} (or its pod on this node) to empty the cache.`,
        'Limit denials in the cluster’s zone: set cache { denial 9984 5 } in the node-local cache and in the Corefile, and a minimum of 5 s in the SOA record.',
        `If no DNS pod has ${name}, correct the name or create the Service (kubectl get services -A).`,
      ],
      prove: `run ndots query ${name} @POD for a DNS pod and ndots query ${name} @${server}; only the second returns NXDOMAIN`,
      disproved:
        'the DNS pods deny the name, too (then it is misspelled, or the Service is missing)',
      exchanges: observed.affectedExchanges((each) => names.includes(each.name)),
    };
  },
};

/**
 * Names of Services that a lookup of a program led to, and that no lookup found. Other steps of a search path are
 * denied for good.
 */
function deniedServices(
  { failedLookups, names, domains }: Observations,
  claims: Claims,
): readonly NameView[] {
  const below = [...domains.all].filter(
    (domain) => domains.isOfCluster(domain) && domain.includes(`.${SERVICES}`),
  );
  return [...failedLookups.names.entries].flatMap(([written, { failed, found }]) => {
    if (failed < MIN_CASES || found > 0) return [];
    const wholes = domains.isOfCluster(written) ? [written] : below.map((each) => written + each);
    return wholes.flatMap((name) => {
      const view = names.get(name, TYPE.A);
      if (view === undefined || claims.names.has(name)) return [];
      const { outcomes, longestTtl, negativeTtls } = view;
      const isDenied = outcomes.nxdomain >= MIN_CASES && outcomes.found + outcomes.nodata === 0;
      return isDenied && longestTtl >= LONG_DENIAL_S && countsDown(negativeTtls) ? view : [];
    });
  });
}
