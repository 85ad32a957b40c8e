/** Names that cannot exist but all get one address, because something replaces NXDOMAIN. */
import { TYPE } from '../../../server/wire/iana.ts';
import { isBelow } from '../../../server/wire/within-zone.ts';
import type { NameView } from '../observe/name-view.ts';
import { registeredDomainOf } from '../observe/domain-of-name.ts';
import type { Observations } from '../observe/observations.ts';
import { endsInTop } from '../observe/registered-names.ts';
import { serversOfNames } from '../observe/servers-of-names.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { listed, sentence } from '../texts.ts';
import {
  IMPOSSIBLE_SHARE,
  MIN_IMPOSSIBLE_NAMES,
  MIN_SAME_ADDRESS_NAMES,
  MIN_SAME_ADDRESS_ZONES,
  MIN_UNRELATED_ZONES,
} from '../thresholds/answers.ts';
import { NEARLY_ALL } from '../thresholds/evidence.ts';

/** Top-level domains that contain no names (RFC 6761), or that only the cluster has. */
const IMPOSSIBLE = new Set(['invalid', 'svc']);
/** Nonexistent top-level domains that private networks may use. */
const PRIVATE = new Set(['test', 'local', 'localhost', 'internal', 'lan', 'corp', 'home']);

/** A wildcard upstream, a hijacking resolver or a captive portal answers for every name. */
export const sameAddress: FindingKind = {
  code: 'ND4033',
  title: 'Names that do not exist all get the same address',
  name: 'one address for missing names',
  inCapture(observed, claims) {
    const views = observed.names.list.filter(
      ({ name, type, outcomes, addresses }) =>
        type === TYPE.A &&
        outcomes.found > 0 &&
        addresses.length > 0 &&
        !claims.names.has(name) &&
        // autopath resolves names that the search path created.
        !observed.domains.isOfCluster(name),
    );
    if (views.length < MIN_SAME_ADDRESS_NAMES) return unknown('too few external names were found');
    const byAddress = [
      ...Map.groupBy(views, ({ addresses }) => addresses.toSorted().join(' ')),
    ].toSorted(([, one], [, other]) => other.length - one.length);
    for (const [address, names] of byAddress) {
      if (names.length < MIN_SAME_ADDRESS_NAMES) break;
      const impossible = names.filter((view) => isImpossible(view, observed));
      const zones = new Set(names.map(({ name }) => registeredDomainOf(name)));
      const doubtful = names.filter(({ name }) => PRIVATE.has(topOf(name))).length;
      const isSure =
        (impossible.length > IMPOSSIBLE_SHARE * names.length &&
          zones.size >= (impossible.length < MIN_IMPOSSIBLE_NAMES ? MIN_SAME_ADDRESS_ZONES : 2)) ||
        (doubtful > MIN_IMPOSSIBLE_NAMES && zones.size > MIN_SAME_ADDRESS_ZONES);
      if (!isSure && !isAll(names, zones, views, observed)) continue;
      const list = [...new Set([...impossible, ...names].map(({ name }) => name))];
      const servers = [...serversOfNames(names)];
      for (const name of list) claims.names.add(name);
      return {
        severity: isSure ? 'critical' : 'warning',
        confidence: isSure ? 0.93 : 0.7,
        seen: [
          sentence(
            `${names.length} names in ${zones.size} zones got the same address ${address}: ${listed(list, 6)}`,
          ),
          impossible.length > 0
            ? sentence(
                `${impossible.length} of them cannot exist, including ${listed(impossible.map(({ name }) => name))}`,
              )
            : 'No external name got NXDOMAIN in the whole capture.',
          `The answers came from ${listed(servers)}.`,
        ],
        why: 'An upstream resolver replaces NXDOMAIN with the address of its own page (a provider’s search page, a filter, a network’s login portal), or a whole domain has a wildcard record. Lookups that should fail succeed, so programs connect to the wrong host, wait, or get the wrong certificate. The search stops at its first name.',
        fix: [
          `Determine what ${address} is (curl -sI http://${address.split(' ')[0]!}). Make ${listed(servers)} answer NXDOMAIN again, or forward to another resolver.`,
          'If the wildcard record is intended, keep its domain out of the pods’ search path (kubelet --resolv-conf).',
          `Until then, the resolver can turn that address into NXDOMAIN (bogus-nxdomain=${address.split(' ')[0]!} in dnsmasq).`,
        ],
        prove: `ndots query some-random-word-4711.example @${servers[0] ?? 'SERVER'} returns an address and not NXDOMAIN`,
        disproved: 'random names get NXDOMAIN (then these names really share one address)',
        exchanges: [...new Set([...observed.searched, ...observed.affected])].flatMap(
          ({ exchanges }) => exchanges.filter(({ name }) => list.includes(name)),
        ),
        affected: list,
      };
    }
    return excluded('unrelated names have different addresses');
  },
};

/**
 * True if the name cannot exist: a single word, or a name below a nonexistent domain. Also a
 * search-path variant of an existing or external name, or one that was denied at another time.
 */
function isImpossible({ name, type, outcomes }: NameView, observed: Observations): boolean {
  if (!name.slice(0, -1).includes('.') || IMPOSSIBLE.has(topOf(name))) return true;
  if (outcomes.nxdomain > 0) return true;
  const domain = observed.domains.domainOf(name);
  if (domain === null || !isBelow(name, domain)) return false;
  const stem = name.slice(0, -domain.length);
  return (
    endsInTop(stem) ||
    (stem.includes('.') && (observed.names.get(stem, type)?.outcomes.found ?? 0) > 0)
  );
}

/** True if (nearly) all external names have the address, and none was ever denied. */
function isAll(
  names: readonly NameView[],
  zones: ReadonlySet<string>,
  all: readonly NameView[],
  { names: { list }, domains }: Observations,
): boolean {
  if (zones.size < MIN_UNRELATED_ZONES || names.length < NEARLY_ALL * all.length) return false;
  return !list.some(({ name, outcomes }) => outcomes.nxdomain > 0 && !domains.isOfCluster(name));
}

function topOf(name: string): string {
  return name.slice(name.lastIndexOf('.', name.length - 2) + 1, -1);
}
