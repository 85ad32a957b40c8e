/** Wildcard records in search domains. */
import { TYPE } from '../../../server/wire/iana.ts';
import { excluded, unknown, type FindingKind, notAsked, noSuffix } from './finding.ts';
import { listed, sentence } from '../texts.ts';
import { isBelow } from '../../../server/wire/within-zone.ts';
import { registeredDomainOf } from '../observe/domain-of-name.ts';
import type { Observations } from '../observe/observations.ts';
import { registeredWithin } from '../observe/registered-names.ts';
import {
  MIN_OTHER_ZONES,
  MIN_SAME_ADDRESS_ZONES,
  SURE_WILDCARD_NAMES,
} from '../thresholds/answers.ts';

export const wildcardDomain: FindingKind = {
  code: 'ND2004',
  title: 'A wildcard record in a search domain answers for external names',
  name: 'a wildcard in a search domain',
  inCapture(observed) {
    const domains = new Set([...observed.domains.all, ...appendedDomains(observed)]);
    for (const domain of domains) if (observed.domains.isOfCluster(domain)) domains.delete(domain);
    if (domains.size === 0) return unknown('no search domain except the cluster’s was seen');
    for (const domain of domains) {
      const found = observed.names.list.filter(
        ({ name, type, outcomes }) =>
          type === TYPE.A && outcomes.found > 0 && isBelow(name, domain),
      );
      const byAddress = Map.groupBy(found, ({ addresses }) => [...addresses].toSorted().join(' '));
      for (const [addresses, names] of byAddress) {
        // Names of different owners: the part before the domain has a dot itself.
        const foreign = names.filter(({ name }) => name.slice(0, -domain.length - 1).includes('.'));
        if (addresses === '' || foreign.length < 2) continue;
        // In that case no name is denied at all (ND4033).
        if (isGivenElsewhere(addresses, domain, observed)) continue;
        const keys = new Set(foreign.map(({ name }) => name));
        return {
          severity: 'critical',
          confidence: foreign.length >= SURE_WILDCARD_NAMES ? 0.93 : 0.8,
          seen: [
            sentence(
              `${foreign.length} unrelated names got the same address ${addresses}. They include ${listed([...keys])}`,
            ),
            `All of them are names with the search domain ${domain} appended.`,
          ],
          why: `A wildcard record *.${domain} exists, and ${domain} is in the pods’ search path. External names with few dots are tried with that domain first and resolve to it, so programs connect to the wrong host and see wrong certificates.`,
          fix: [
            `Remove ${domain} from the nodes’ resolv.conf, or give kubelet another file (--resolv-conf).`,
            'Write external names with a trailing dot, or set ndots:1.',
          ],
          prove: `ndots query some-random-word.${domain} returns an address`,
          disproved: 'random names under that domain get NXDOMAIN',
          exchanges: [...new Set([...observed.searched, ...observed.affected])].flatMap(
            ({ exchanges }) => exchanges.filter(({ name }) => keys.has(name)),
          ),
        };
      }
    }
    return excluded('names under the search domains have different addresses');
  },
  inCluster({ answers, clients }) {
    if (answers === null) return notAsked;
    const { suffixes } = answers;
    if (suffixes.size === 0) return noSuffix;
    const found = [...suffixes].filter(([, replies]) => replies.wildcard.length > 0);
    if (found.length === 0)
      return excluded(`made-up names under ${listed([...suffixes.keys()])} do not exist`);
    const theirs = (clients ?? []).filter(({ searches }) =>
      searches.some((search) =>
        found.some(([suffix]) => `${search.replace(/\.$/, '')}.` === suffix),
      ),
    );
    return {
      severity: 'critical',
      confidence: 0.96,
      seen: found.map(
        ([suffix, replies]) =>
          `The made-up name ${replies.random} resolves to ${replies.wildcard.join(' ')}, so *.${suffix} exists.`,
      ),
      affected:
        theirs.length > 0
          ? theirs.map(({ namespace, workload }) => `${namespace}/${workload}`)
          : ['pods with this domain in their search path'],
      why: 'Names with fewer dots than ndots are first tried with each search domain appended. The wildcard answers these, and the program connects to the wrong host, which shows as certificate errors.',
      fix: [
        'Remove the domain from the search path, either in the node’s resolv.conf (which kubelet passes on) or in dnsConfig.',
        'Or set the dnsConfig option ndots to 1 or 2, or write names with a trailing dot.',
      ],
      prove: `ndots query ${found[0]![1].random} returns the same address as any other name there`,
      disproved: '',
    };
  },
};

/** True if unrelated names outside the domain also have these addresses. */
function isGivenElsewhere(addresses: string, domain: string, { names }: Observations): boolean {
  const zones = new Set(
    names.list.flatMap(({ name, type, addresses: theirs }) =>
      type === TYPE.A && theirs.toSorted().join(' ') === addresses && !isBelow(name, domain)
        ? registeredDomainOf(name)
        : [],
    ),
  );
  zones.delete(registeredDomainOf(domain));
  return zones.size >= MIN_OTHER_ZONES;
}

/** Domains appended to names of other owners, which have other addresses as written, if any. */
function appendedDomains({ names }: Observations): readonly string[] {
  const within = names.list.flatMap(({ name, type, outcomes, addresses }) => {
    const parts = type === TYPE.A && outcomes.found > 0 ? registeredWithin(name) : null;
    return parts === null ? [] : { ...parts, addresses };
  });
  return [...Map.groupBy(within, ({ domain }) => domain)].flatMap(([domain, all]) => {
    const zones = new Set(all.map(({ stem }) => registeredDomainOf(stem)));
    // A network that delivers for other sites has their addresses.
    const isAlias = all.some(({ stem, addresses }) =>
      names.get(stem, TYPE.A)?.addresses.some((address) => addresses.includes(address)),
    );
    // Of names of several owners some are in the most common domain.
    const isCommon = all.some(({ stem }) => stem.endsWith('.com.'));
    return zones.size < MIN_SAME_ADDRESS_ZONES || isAlias || !isCommon ? [] : domain;
  });
}
