/** Names that exist without an address (NODATA), which programs report like missing names. */
import { serviceOf } from '../observe/common-service.ts';
import type { EmptyName } from '../observe/failed-lookups.ts';
import type { Observations } from '../observe/observations.ts';
import { addressTypes, TYPE } from '../../../server/wire/iana.ts';
import { programs } from '../observe/roles.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { listed, sentence } from '../texts.ts';
import { type Claims } from '../observe/claims.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';

export const namesWithoutAddresses: FindingKind = {
  code: 'ND8007',
  title: 'A name exists but has no address (NODATA), so its lookups fail',
  name: 'names that exist without addresses (NODATA)',
  inCapture(observed, claims) {
    if (observed.types.get(TYPE.A) === undefined) return unknown('no A query was seen');
    const found = emptyNames(observed, claims);
    const [first] = found;
    if (first === undefined) return excluded('every queried name that exists has an address');
    for (const { name, written } of found) claims.names.add(name).add(written);
    const names = found.map(({ name }) => name);
    const typesOf = (name: string): string =>
      observed.names.get(name, TYPE.AAAA) === undefined ? 'A' : 'A and AAAA';
    const clients = [...new Set(found.flatMap((each) => [...each.clients.keys()]))];
    const services = names.filter((name) => isService(name, observed));
    const [service = 'SERVICE', namespace = 'NAMESPACE'] =
      serviceOf(services[0] ?? '')?.split('.') ?? [];
    const server = first.samples[0]!.server.address;
    return {
      title: names.every((name) => isService(name, observed) && serviceOf(name) === name)
        ? 'A headless Service has no ready endpoints, so its name has no address (NODATA)'
        : this.title,
      severity: 'warning',
      confidence: 0.88,
      seen: [
        sentence(
          `These lookups got NODATA (NOERROR without an answer): ${listed(found.map(({ name, lookups }) => `${name} ${typesOf(name)} (${lookups} lookups)`))}`,
        ),
        `The servers returned neither NXDOMAIN nor an address for ${names.length === 1 ? 'this name' : 'these names'}.`,
        `The queries came from ${listed(clients)}.`,
      ],
      why:
        services.length > 0
          ? 'The Service exists, since its name would otherwise get NXDOMAIN. A headless Service has its ready endpoints’ addresses, so without ready endpoints it has none. A Service with addresses only in the other IP family looks the same. Programs report that the name does not resolve.'
          : 'The name exists with records of other types (TXT, MX, AAAA) or with names below it, but has no address of the type that programs query. Programs report that the name does not resolve.',
      fix: [
        services.length > 0 &&
          `Check for ready endpoints: kubectl -n ${namespace} get endpointslices -l kubernetes.io/service-name=${service}. Fix the readiness of its pods, or the Service’s selector.`,
        services.length > 0 &&
          'If clients have to reach pods that are not ready yet, set publishNotReadyAddresses: true in the Service.',
        services.length < names.length &&
          `Add an address of this type to the zone of ${listed(names.filter((name) => !services.includes(name)))}, or correct the name in the program.`,
      ],
      prove: `ndots query ${first.name} A @${server} (and AAAA) returns NOERROR without an answer`,
      disproved: 'the same query returns an address or NXDOMAIN',
      exchanges: found.flatMap(({ samples }) => samples),
    };
  },
};

/** The most frequent first. */
function emptyNames(observed: Observations, claims: Claims): readonly EmptyName[] {
  const { failedLookups, names, replyFaults } = observed;
  const askers = new Set(programs(observed).map(({ address }) => address));
  return failedLookups.empty.list
    .filter(({ name, lookups, clients }) => {
      if (lookups < MIN_CASES || claims.names.has(name)) return false;
      if (![...clients.keys()].some((client) => askers.has(client))) return false;
      // Replies without a SOA record, and referrals, do not show whether the name has addresses.
      for (const fault of ['bare', 'referral'] as const)
        if (replyFaults.kinds.get(fault)?.names.get(`${TYPE.A} ${name}`) !== undefined)
          return false;
      return addressTypes.every((type) => {
        const outcomes = names.get(name, type)?.outcomes;
        return outcomes === undefined || outcomes.found + outcomes.nxdomain === 0;
      });
    })
    .toSorted((one, other) => other.lookups - one.lookups);
}

function isService(name: string, { domains }: Observations): boolean {
  return name.includes('.svc.') && domains.isOfCluster(name);
}
