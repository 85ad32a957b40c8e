/** Programs that write Service names in full, with a cluster domain that this cluster does not have. */
import { isBelow, isWithin } from '../../../server/wire/within-zone.ts';
import type { NameView } from '../observe/name-view.ts';
import type { Observations } from '../observe/observations.ts';
import { isServer } from '../observe/roles.ts';
import { serversOfNames } from '../observe/servers-of-names.ts';
import { strayCharacters } from '../observe/stray-characters.ts';
import { listed } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

const SERVICES = 'svc.';
/**
 * Matches SERVICE.NAMESPACE.svc.DOMAIN, perhaps after a port's name. Captures the part before DOMAIN, and DOMAIN. A port
 * or another stray character after it is a different mistake (ND2008).
 */
const WHOLE_NAME = /^((?:_[^.]+\._[^.]+\.)?[^._][^.]*\.[^.]+\.svc\.)((?:[a-z\d-]+\.)+)$/;

/** Names that programs wrote in full, in one domain. */
interface Written {
  readonly domain: string;
  readonly views: readonly NameView[];
}

/** Programs query full Service names in a domain where nothing exists, while the pods' search path has one that works. */
export const hardCodedDomain: FindingKind = {
  code: 'ND2010',
  title: 'Some pods search a cluster domain that does not exist (kubelet’s clusterDomain)',
  name: 'a wrong cluster domain',
  inCapture(observed, claims) {
    const { names } = observed;
    const searched = [...observed.domains.all].flatMap((domain) =>
      domain.startsWith(SERVICES) ? domain.slice(SERVICES.length) : [],
    );
    if (searched.length === 0) return unknown('no pod’s search path was seen');
    const working = searched.filter((domain) => serversWith(domain, observed).size > 0);
    const [found] = writtenIn(observed, searched).flatMap(({ domain, views }) => {
      const denied = views.reduce((sum, { outcomes }) => sum + outcomes.nxdomain, 0);
      const isThere = names.list.some(
        ({ name, outcomes }) => isWithin(name, domain) && outcomes.found + outcomes.nodata > 0,
      );
      const isKnown = views.every(({ name }) => claims.names.has(name));
      if (denied < MIN_CASES || isThere || isKnown) return [];
      // The servers that deny the names know the cluster, so no foreign server is at fault.
      const right = working.find((each) => {
        const knowing = serversWith(each, observed);
        return views.every(({ servers }) => [...servers].some(([server]) => knowing.has(server)));
      });
      return right === undefined ? [] : [{ domain, views, denied, right }];
    });
    if (found === undefined)
      return excluded('Service names that are written in full are in the cluster’s domain');
    const { domain, views, denied, right } = found;
    const written = [...new Set(views.map(({ name }) => name))];
    // Search domains are appended to these names as well.
    const isOfThese = ({ name }: { readonly name: string }): boolean =>
      written.some((each) => name.startsWith(each));
    const lookups = observed.affected.filter(
      ({ client, exchanges }) => !isServer(observed, client) && exchanges.some(isOfThese),
    );
    for (const view of names.list) if (isOfThese(view)) claims.names.add(view.name);
    const clients = [...new Set(lookups.map(({ client }) => client))];
    const others = written.map((name) => WHOLE_NAME.exec(name)![1]! + right);
    const there = names.list.flatMap(({ name, outcomes }) => (outcomes.found > 0 ? name : []));
    const existing = there.filter((name) => others.includes(name));
    const example = there.find((name) => isBelow(name, right))!;
    return {
      title: `Programs write Service names under ${domain}, but this cluster’s domain is ${right}`,
      subject: domain,
      severity: 'critical',
      confidence: 0.95,
      seen: [
        `${denied} queries for Service names under ${domain} got NXDOMAIN, and no name exists there: ${listed(written)}`,
        `The pods’ search path ends in ${right}, where names exist, such as ${listed(existing.length > 0 ? existing : [example])}`,
        clients.length > 0 && `These names are queried by ${listed(clients, 6)}.`,
      ],
      why: `The names are written in full in the program or its configuration, with a domain that this cluster does not have (${domain === 'cluster.local.' ? 'the default of Kubernetes' : 'perhaps the domain of another cluster'}). The cluster’s DNS has no such zone, so it forwards the names, and the upstream denies them. Short names work, because the search path ends in ${right}`,
      fix: [
        `In the program’s configuration, write these names without the domain (${written[0]!.slice(0, -domain.length - SERVICES.length - 1)}), so that the search path completes them, or with the right one (${others[0]!}).`,
        `If they cannot be changed, let the cluster’s DNS serve both domains: kubernetes ${right.slice(0, -1)} ${domain.slice(0, -1)} in the Corefile.`,
      ],
      prove: `run ndots query ${others[0]!}, which exists, and ndots query ${written[0]!}, which does not`,
      disproved: `the Corefile’s kubernetes plugin serves ${domain.slice(0, -1)}`,
      exchanges: lookups.flatMap(({ exchanges }) => exchanges.filter(isOfThese)),
      affected: clients,
    };
  },
};

/** Full Service names by their domain, without those that a search completed or continued. */
function writtenIn({ names }: Observations, searched: readonly string[]): readonly Written[] {
  const views = names.list.filter(({ name }) => {
    const domain = WHOLE_NAME.exec(name)?.[2];
    if (domain === undefined || searched.some((each) => isWithin(domain, each))) return false;
    // A port at the end of the host, or a template.
    return strayCharacters(domain) === null;
  });
  const byDomain = Map.groupBy(views, ({ name }) => WHOLE_NAME.exec(name)![2]!);
  // `cluster.local.ec2.internal.` is a domain with a search domain appended.
  const isAppended = (domain: string): boolean =>
    [...searched, ...byDomain.keys()].some(
      (each) => domain.length > each.length && domain.startsWith(each),
    );
  return [...byDomain].flatMap(([domain, all]) =>
    isAppended(domain) ? [] : { domain, views: all },
  );
}

function serversWith(domain: string, { names }: Observations): ReadonlySet<string> {
  return serversOfNames(
    names.list.filter(({ name }) => isBelow(name, domain)),
    ({ found }) => found > 0,
  );
}
