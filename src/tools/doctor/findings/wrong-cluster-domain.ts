/** Search paths of a cluster domain that does not exist, as of one node’s kubelet. */
import { absoluteName, withoutFinalDot } from '../observe/absolute-name.ts';
import { isBelow } from '../../../server/wire/within-zone.ts';
import type { Claims } from '../observe/claims.ts';
import type { Observations } from '../observe/observations.ts';
import { addOutcomes, noOutcomes, type Outcomes } from '../observe/outcomes.ts';
import type { SeenExchange, SeenLookup } from '../../capture/pair/seen-exchange.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { keysOf, listed, sentence, share } from '../texts.ts';
import { isCloudResolver, isOutside } from '../observe/outside-address.ts';
import { isForwarder, isServer } from '../observe/roles.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import {
  MAX_SHORT_LABELS,
  MIN_DENIALS,
  MIN_FAILED_LOOKUPS,
  MIN_FAILED_NAMES,
} from '../thresholds/search.ts';

const SERVICES = 'svc.';
/** The default of kubelet and CoreDNS. */
const DEFAULT_DOMAIN = 'cluster.local.';
const LONGER = /^[^.]+\.[^.]+\.svc$/;

/** A search domain in which nothing was ever found, while another one works. */
export const wrongClusterDomain: FindingKind = {
  code: 'ND2010',
  title: 'Some pods search a cluster domain that does not exist (kubelet’s clusterDomain)',
  name: 'a wrong cluster domain',
  inCapture(observed, claims) {
    const domains = [...observed.domains.all].flatMap((domain) =>
      domain.startsWith(SERVICES) ? domain.slice(SERVICES.length) : [],
    );
    if (domains.length === 0) return unknown('no pod’s search path was seen');
    const sums = new Map(
      [...new Set([...domains, DEFAULT_DOMAIN])].map((domain) => [domain, below(domain, observed)]),
    );
    const working = [...sums].flatMap(([domain, { found, nodata }]) =>
      found + nodata > 0 ? domain : [],
    );
    for (const domain of domains) {
      const sum = sums.get(domain)!;
      if (sum.found + sum.nodata > 0 || sum.nxdomain < MIN_DENIALS) continue;
      if (isKnown(domain, observed, claims)) continue;
      const failed = failedIn(domain, working, observed).filter(
        ({ client }) => !isServer(observed, client),
      );
      const names = [...new Set(failed.map(({ name }) => name))];
      if (working.length === 0 && !isAlone(domain, failed, names, observed)) continue;
      if (failed.length === 0) continue;
      const askers = [...new Set(failed.map(({ client }) => client))];
      const pods = askers.filter((address) => !isForwarder(observed, address));
      const clients = pods.length > 0 ? pods : askers;
      for (const { name } of observed.names.list) if (isBelow(name, domain)) claims.names.add(name);
      for (const name of names) claims.names.add(absoluteName(name));
      const [right = 'the domain that the DNS server has'] = working;
      // Without another domain that works, a server that does not know the cluster looks the same.
      const strange = working.length === 0 && domain === DEFAULT_DOMAIN;
      const servers = keysOf(exchangesBelow(domain, failed), ({ server }) => server.address);
      const [one, is] = [listed(servers), servers.length === 1 ? 'is' : 'are'];
      return {
        severity: 'critical',
        confidence: working.length > 0 ? 0.95 : strange ? 0.75 : 0.85,
        seen: [
          sentence(
            `No name was found under ${domain}, where ${share(sum.nxdomain, sum.asked)} queries got NXDOMAIN${working.length > 0 ? `, while names exist under ${listed(working)}` : ''}`,
          ),
          sentence(
            `${failed.length} lookups of ${listed(names.map(withoutFinalDot))} failed after trying ${listed(searchPathOf(domain, observed))}`,
          ),
          pods.length > 0
            ? `These pods have this search path: ${listed(pods, 6)}.`
            : `Pods with this search path are behind ${listed(askers, 6)}, which forwards their queries.`,
        ],
        why: `kubelet writes the search path NAMESPACE.svc.DOMAIN, svc.DOMAIN, DOMAIN into each pod. On these pods’ node, DOMAIN is ${domain} but the cluster’s DNS has no such zone, so no Service is found by a short name. External names work, but each after ${domains.length > 1 ? 'several' : '3'} queries that cannot succeed.${strange ? ` Or ${one} ${is} not the cluster’s DNS, and these pods have nameservers of their own in dnsConfig.` : ''}`,
        fix: [
          strange &&
            `Compare ${one} with the address of the DNS Service (kubectl -n kube-system get service kube-dns). If it differs, remove nameservers from these pods’ dnsConfig.`,
          `${strange ? 'Otherwise, set' : 'Set'} kubelet’s clusterDomain on that node (KubeletConfiguration, --cluster-domain) to ${right}, restart kubelet, and recreate the pods.`,
          `Or serve that domain as well, with kubernetes ${right === DEFAULT_DOMAIN ? 'cluster.local' : 'CLUSTER_DOMAIN'} ${domain.slice(0, -1)} in the Corefile.`,
        ],
        prove: `run kubectl get --raw /api/v1/nodes/NODE/proxy/configz | grep clusterDomain for ${pods.length > 0 ? `the node of ${pods[0]!} and another one` : 'each node'}`,
        disproved: 'a Service is found under this domain',
        exchanges: failed.flatMap(({ exchanges }) => exchanges),
        affected: clients,
      };
    }
    return excluded('names are found in the cluster domain of each search path');
  },
};

/** True if another finding explains why no name is found under the domain. */
function isKnown(domain: string, { names }: Observations, claims: Claims): boolean {
  return names.list.every(({ name }) => !isBelow(name, domain) || claims.names.has(name));
}

/** The results of queries for names below a domain. */
function below(domain: string, { names }: Observations): Outcomes {
  const sum = noOutcomes();
  for (const { name, outcomes } of names.list)
    if (isBelow(name, domain)) addOutcomes(sum, outcomes);
  return sum;
}

/** Exchanges of these lookups for names in this domain. */
function exchangesBelow(domain: string, lookups: readonly SeenLookup[]): readonly SeenExchange[] {
  return lookups.flatMap(({ exchanges }) => exchanges.filter(({ name }) => isBelow(name, domain)));
}

/**
 * Lookups that ended without a result and tried this cluster domain, and none that works. A resolver
 * outside the cluster denies each cluster domain, so its denials show nothing about this one.
 */
function failedIn(
  domain: string,
  working: readonly string[],
  observed: Observations,
): readonly SeenLookup[] {
  const isForeign = (address: string): boolean =>
    isOutside(observed, address) || isCloudResolver(address);
  return observed.affected.filter(
    ({ candidates, exchanges, name }) =>
      candidates.some((each) => isBelow(each, domain)) &&
      !candidates.some((each) => working.some((other) => isBelow(each, other))) &&
      !exchanges.some(({ answers, server }) => answers > 0 || isForeign(server.address)) &&
      isShort(withoutFinalDot(name)),
  );
}

/**
 * True if a domain is wrong that cannot be compared with another: short names fail to their end in
 * it, and the server that denies them does not have it as a cluster zone.
 */
function isAlone(
  domain: string,
  failed: readonly SeenLookup[],
  names: readonly string[],
  { replyFaults, clients }: Observations,
): boolean {
  if (failed.length < MIN_FAILED_LOOKUPS || names.length < MIN_FAILED_NAMES) return false;
  // An upstream denies the cluster’s domain, since its other clients query it only for external names.
  const isUpstream = clients.list.some(
    ({ wasted, outcomes: { found } }) => wasted === 0 && found >= MIN_CASES,
  );
  if (domain === DEFAULT_DOMAIN && isUpstream) return false;
  const zones = replyFaults.zones.list.filter(({ name }) => isBelow(name, domain));
  // CoreDNS and ndots name themselves so in the zone of a cluster.
  if (zones.some(({ primary }) => primary === `ns.dns.${domain}`)) return false;
  return (
    domain !== DEFAULT_DOMAIN || zones.some(({ zone }) => zone !== domain && !isBelow(zone, domain))
  );
}

/** The search domains that end in this one, the longest first. */
function searchPathOf(domain: string, { domains }: Observations): readonly string[] {
  return [...domains.all]
    .filter((each) => each === domain || isBelow(each, domain))
    .toSorted((one, other) => other.length - one.length);
}

/** True if programs write Service names like this: `db`, `db.shop`, `db.shop.svc`. */
function isShort(name: string): boolean {
  return name.split('.').length <= MAX_SHORT_LABELS || LONGER.test(name);
}
