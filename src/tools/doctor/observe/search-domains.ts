/** Search domains whose names all fail, or are the only ones that get no reply. */
import { isBelow } from '../../../server/wire/within-zone.ts';
import type { Claims } from './claims.ts';
import type { DeadNames } from './dead-names.ts';
import { isAllBelow } from './failing-walks.ts';
import type { Observations } from './observations.ts';
import { SEARCH_DOMAIN_CHANCE } from '../thresholds/search.ts';

/** The domains in search paths, without the cluster’s domain and those of namespaces, which end in it. */
export function domainsOf({ domains }: Observations): readonly string[] {
  return [...domains.all].filter(
    (domain) => !/(^|\.)svc\./.test(domain) && !domains.all.has(`svc.${domain}`),
  );
}

/**
 * The search domain below which names fail, and (nearly) no others, whatever becomes of them at
 * other times; null: there is none.
 */
export function failingDomain(observed: Observations, claims: Claims): string | null {
  return (
    domainsOf(observed).find((domain) => isAllBelow(observed, claims, makes(domain, observed))) ??
    null
  );
}

/** True if this search domain, and not a longer one, created a name. */
export function makes(domain: string, { domains }: Observations): (name: string) => boolean {
  return (name) => isBelow(name, domain) && domains.domainOf(name) === domain;
}

/**
 * The search domain that all of these names are below, and nothing that is answered; null: there is
 * none, or it may be chance.
 */
export function searchDomainOf(
  { names, answered, chanceOfThese }: DeadNames,
  observed: Observations,
): string | null {
  const domains = domainsOf(observed);
  if (names.length < 2 || chanceOfThese * domains.length > SEARCH_DOMAIN_CHANCE) return null;
  const below = (domain: string) => (name: string) => isBelow(name, domain);
  return (
    domains.find((domain) => names.every(below(domain)) && !answered.some(below(domain))) ?? null
  );
}
