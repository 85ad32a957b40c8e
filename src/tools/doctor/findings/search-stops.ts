/** musl abandons the search path where other resolvers continue. */
import { absoluteName } from '../observe/absolute-name.ts';
import { FLAG, RCODE, rcodeName } from '../../../server/wire/iana.ts';
import type { Observations } from '../observe/observations.ts';
import type { SearchDomains } from '../../capture/pair/search-walk.ts';
import { isEmpty, type SeenExchange, type SeenLookup } from '../../capture/pair/seen-exchange.ts';
import { excluded, unknown, type FoundCause, type FindingKind, notAsked } from './finding.ts';
import { commonZone } from '../../../server/wire/within-zone.ts';
import type { ClientView } from '../observe/client-view.ts';
import { listed } from '../texts.ts';
import { isBarred } from '../observe/barred.ts';
import { SURE_RESOLVER } from '../thresholds/evidence.ts';
import { MANY_LOOKUPS } from '../thresholds/search.ts';

export const searchStops: FindingKind = {
  code: 'ND2002',
  title: 'Alpine (musl) pods give up at a search domain where other pods would continue',
  name: 'a search path that ends early (musl)',
  inCapture(observed, claims) {
    const musl = observed.clients.list.filter((client) => {
      const best = client.recognition.best;
      // A client that gets REFUSED for every name does not stop at a particular domain.
      return best?.kind === 'musl' && best.confidence >= SURE_RESOLVER && !isBarred(client);
    });
    if (musl.length === 0) return unknown('no client was recognized as musl (Alpine)');
    const addresses = new Set(musl.map(({ address }) => address));
    const stopped = observed.affected.flatMap((lookup) => {
      const isTheirs = addresses.has(lookup.client) && !claims.names.has(lookup.candidates.at(-1)!);
      const last = isTheirs ? lastStep(lookup, observed) : null;
      // If other names under the domain are answered, the name fails rather than the domain.
      return last === null || (last.failed && isAnswered(last.domain, observed))
        ? []
        : [{ lookup, ...last }];
    });
    if (stopped.length === 0) {
      const guess = likelyDomain(observed, musl);
      return guess === null
        ? excluded('lookups of Alpine pods try their whole search path')
        : likelyStop(guess);
    }
    const { domain, how, failed } = stopped[0]!;
    const same = stopped.filter((each) => each.domain === domain);
    const exchanges = same.flatMap(({ lookup }) => lookup.exchanges);
    claims.take(exchanges);
    const isSingle = same.length === 1 && observed.lookups >= MANY_LOOKUPS;
    const names = [...new Set(same.map(({ lookup }) => lookup.name))];
    return {
      severity: isSingle ? 'warning' : 'critical',
      // Another finding covers the failing domain.
      confidence: isSingle ? 0.5 : failed ? 0.7 : stopped.length >= 2 ? 0.92 : 0.8,
      seen: [
        `${same.length} lookups of ${addresses.size} Alpine ${addresses.size === 1 ? 'client' : 'clients'} (${listed(names)}) ended at the search domain ${domain}, which answered ${how}.`,
        'The name was never queried as written.',
      ],
      why: 'musl, the C library of Alpine images, tries the next search domain only after NXDOMAIN. SERVFAIL and REFUSED end the lookup after 5 s. An answer without an address (NODATA) ends it at once with "Name does not resolve". glibc and Go continue after all of these.',
      fix: [
        // Without the cluster's own domains, no Service is found by its short name.
        !observed.domains.isOfCluster(domain) &&
          `Remove ${domain} from the search path, which comes from the node’s resolv.conf (kubelet --resolv-conf) or from the pod’s dnsConfig.`,
        `Remove wildcards and empty names under ${domain.slice(0, -1)}, so that its server answers NXDOMAIN for missing names.`,
        'Write external names with a trailing dot, or set ndots:1 for these pods.',
      ],
      prove: `ndots trace ${names[0]} --client musl,glibc --from POD`,
      disproved: 'the same lookup in a glibc pod also fails',
      exchanges,
    };
  },
  inCluster({ answers }) {
    if (answers === null) return notAsked;
    const result = answers.checks.get('walk');
    if (result === undefined || result.state === 'unknown')
      return unknown('no search path could be tested');
    const failed = result.observations.filter(({ state }) => state === 'failed');
    if (failed.length === 0)
      return excluded('glibc, musl and Go all find kubernetes.default through the search path');
    return {
      severity: 'critical',
      confidence: 0.85,
      seen: failed.map(({ target, text }) => `${target}: ${text}.`),
      affected: failed.map(({ target }) => `programs with ${target}`),
      why: 'These lookups were simulated with models of these resolvers against the Service. musl tries the next search domain only after NXDOMAIN, and any other answer ends its lookup.',
      fix: [
        'Run ndots trace kubernetes.default --client all to see what each search domain returns, and make it return NXDOMAIN.',
      ],
      prove: 'ndots trace kubernetes.default --client all @SERVICE-ADDRESS',
      disproved: 'a pod with that C library finds the name',
    };
  },
};

/** A domain that may or may not be in the search path. */
interface LikelyDomain {
  readonly domain: string;
  readonly clients: readonly string[];
  readonly stems: readonly string[];
  readonly lookups: readonly SeenLookup[];
}

/**
 * The domain under which all failing lookups of Alpine pods end at their first name; null if there
 * is none. Without the domain, some names have to look like `web` and others like `cache.platform`.
 */
function likelyDomain(
  { affected, domains }: Observations,
  musl: readonly ClientView[],
): LikelyDomain | null {
  const addresses = new Set(musl.map(({ address }) => address));
  const lookups = affected.filter(
    ({ client, candidates, exchanges }) =>
      addresses.has(client) &&
      candidates.length === 1 &&
      exchanges.some(({ rcode }) => rcode === RCODE.SERVFAIL || rcode === RCODE.REFUSED) &&
      !exchanges.some(({ answers }) => answers > 0),
  );
  const names = [...new Set(lookups.map(({ candidates: [name] }) => name!))];
  if (names.length < 2) return null;
  const domain = names.reduce(commonZone);
  if (domain.split('.').length <= 2 || domains.isOfCluster(domain)) return null;
  const stems = names.map((name) => name.slice(0, -domain.length - 1));
  const isPath =
    stems.some((stem) => stem.includes('.')) && stems.some((stem) => !stem.includes('.'));
  const clients = [...new Set(lookups.map(({ client }) => client))];
  return isPath ? { domain, clients, stems, lookups } : null;
}

function likelyStop({ domain, clients, stems, lookups }: LikelyDomain): FoundCause {
  const exchanges = lookups.flatMap((lookup) => lookup.exchanges);
  const { rcode } = exchanges.find((each) => each.rcode > 0)!;
  return {
    severity: 'critical',
    confidence: 0.78,
    seen: [
      `${lookups.length} lookups of ${listed(clients)} (musl) ended with ${rcodeName(rcode)} at a name under ${domain} They queried ${listed(stems.map((stem) => `${stem}.${domain}`))}`,
      `These look like Service names (${listed(stems)}) with a search domain appended, so the pods’ search path probably begins with it. No other search domain was tried.`,
    ],
    why: `musl, the C library in Alpine images, gives up the whole lookup at SERVFAIL or REFUSED. If ${domain} is in these pods’ search path, their lookups of short names end there, and the cluster’s domains that follow are never tried. glibc and Go continue, only more slowly.`,
    fix: [
      `If ${domain} is in these pods’ /etc/resolv.conf, remove it (dnsConfig.searches, or the node’s resolv.conf), or put it after the cluster’s domains.`,
      `Make the server for ${domain} answer NXDOMAIN for missing names, or answer the domain in the cluster.`,
      'Otherwise, write Service names in full (web.shop.svc.cluster.local).',
    ],
    prove: `kubectl exec POD -- cat /etc/resolv.conf shows a search line that begins with ${domain.slice(0, -1)}`,
    disproved: `${domain} is not in the search path (then the programs look up these names intentionally)`,
    exchanges,
  };
}

/**
 * The search domain where an unsuccessful lookup ended, and the reply there. Null if the lookup
 * tried the whole path.
 */
function lastStep(
  { candidates, exchanges, name }: SeenLookup,
  { domains }: Observations,
): { readonly domain: string; readonly how: string; readonly failed: boolean } | null {
  // Log lines are in the order of the replies. Without times, they do not show which
  // queries form a lookup.
  if (exchanges[0]!.logged === 'without times') return null;
  const last = candidates.at(-1)!;
  if (candidates.length > 1 && last === absoluteName(name)) return null;
  const domain = domains.domainOf(last);
  if (domain === null) return null;
  const own = exchanges.filter((each) => each.name === last && each.ending === 'answered');
  const failed = own.find(({ rcode }) => rcode === RCODE.SERVFAIL || rcode === RCODE.REFUSED);
  if (failed !== undefined) return { domain, how: rcodeName(failed.rcode), failed: true };
  const empty = own.length >= 2 && own.every(isNodata);
  // A cluster name that is queried in full may well have no address, which is not a search.
  return empty && (candidates.length > 1 || !isService(name, domains))
    ? { domain, how: 'that the name exists without an address (NODATA)', failed: false }
    : null;
}

/** True if more names under the domain are answered than fail. */
function isAnswered(domain: string, { names, domains }: Observations): boolean {
  const failing = new Set<string>();
  const fine = new Set<string>();
  for (const { name, outcomes } of names.list)
    if (domains.domainOf(name) === domain)
      (outcomes.servfail + outcomes.refused > 0 ? failing : fine).add(name);
  return [...fine].filter((name) => !failing.has(name)).length > failing.size;
}

/** True for a Service's full name, under `svc` in the cluster domain. */
function isService(name: string, domains: SearchDomains): boolean {
  return name.includes('.svc.') && domains.isOfCluster(name);
}

/** (A truncated reply does not show its records.) */
function isNodata(exchange: SeenExchange): boolean {
  const { rcode, replyFlags } = exchange;
  return rcode === RCODE.NOERROR && isEmpty(exchange) && (replyFlags & FLAG.TC) === 0;
}
