/**
 * Programs that keep querying names that do not exist: a deleted queue, generated names, a wrong
 * domain.
 */
import type { SeenLookup } from '../../capture/pair/seen-exchange.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { listed, percent, share } from '../texts.ts';
import { absoluteName } from '../observe/absolute-name.ts';
import { blockListTest } from '../observe/block-lists.ts';
import { searchSteps, type SearchSteps } from '../observe/search-steps.ts';
import { countdown, countsDown } from '../observe/remembered-denial.ts';
import { isBelow } from '../../../server/wire/within-zone.ts';
import {
  ABSENT_SHARE,
  AS_WRITTEN_SHARE,
  DOMAIN_SHARE,
  FEW_NAMES_SHARE,
  MIN_ABSENT_QUERIES,
  SEARCHED_SHARE,
} from '../thresholds/search.ts';
import { MIN_QUERIES } from '../thresholds/evidence.ts';

/** Many queries are for names that do not exist and that no search path created. */
export const absentNames: FindingKind = {
  code: 'ND2008',
  title: 'Programs keep querying names that do not exist',
  name: 'queries for names that do not exist',
  inCapture(observed, claims) {
    const { absent, total, names, seconds } = observed;
    if (total.asked < MIN_QUERIES) return unknown('too few queries');
    const searched = absent.queries < ABSENT_SHARE * total.asked;
    if (
      absent.queries < MIN_ABSENT_QUERIES ||
      absent.queries < AS_WRITTEN_SHARE * total.asked ||
      absent.walked < (searched ? 2 : 1) * ABSENT_SHARE * total.asked
    )
      return excluded(
        `${percent(absent.queries, total.asked)} of the queries are for names that do not exist as written`,
      );
    const areMost = (isOne: (lookup: SeenLookup) => boolean): boolean =>
      absent.samples.filter(isOne).length >= SEARCHED_SHARE * absent.samples.length;
    const steps = searchSteps(observed);
    if (areMost((lookup) => isMadeBySearch(lookup, steps)))
      return excluded(
        'these are existing names with a search domain appended; a capture at one of several servers shows only some steps of each search',
      );
    const isOfList = blockListTest(names.list);
    if (areMost(({ name }) => isOfList(absoluteName(name))))
      return excluded('these names are block list lookups, where NXDOMAIN means "not listed"');
    if (areMost(({ candidates }) => claims.names.has(candidates.at(-1) ?? '')))
      return excluded('another finding explains why these names do not exist');
    const open = [...absent.names].filter((name) => !claims.names.has(name));
    for (const name of absent.names) claims.names.add(name);
    const domain = absent.domain(DOMAIN_SHARE);
    const clients = absent.clients.list.toSorted((one, other) => other.queries - one.queries);
    const seen = new Set(open.filter((name) => isBelow(name, domain)));
    const few = seen.size <= FEW_NAMES_SHARE * absent.lookups;
    const cached = names.list.find(
      ({ name, negativeTtls }) => few && seen.has(name) && countsDown(negativeTtls),
    );
    const ttls = countdown(cached?.negativeTtls ?? []).map(({ ttl }) => ttl);
    const busiest = clients.map(
      ({ address, queries }) => `${address} (${percent(queries, absent.queries)} of these queries)`,
    );
    return {
      severity: 'warning',
      confidence: 0.9,
      seen: [
        `${share(absent.queries, total.asked)} queries for a name as written got NXDOMAIN${seconds === 0 ? '' : `, ${(absent.queries / Math.max(1, seconds)).toFixed(0)} a second`}${searched ? `, after the search path had been tried. Together with the search path, that is ${share(absent.walked, total.asked)} queries` : '; no search path created these names'}.`,
        `Busiest clients: ${listed(busiest)}`,
        cached !== undefined &&
          `NXDOMAIN for ${cached.name} comes from a cache, because its TTL counts down (${ttls.slice(0, 4).join(', ')}). If the name has been created since, the cache keeps denying it for up to ${cached.longestTtl} s.`,
        `${few ? `The same ${seen.size} names are queried again and again` : `New names are queried each time, ${seen.size} so far`}, ${domain === '.' ? 'with no common domain' : `all under ${domain}`}: ${listed([...seen])}`,
      ],
      why: few
        ? 'A program looks up something that does not exist, such as a deleted or renamed Service or a misspelled namespace or domain. It retries without a pause and keeps failing until it is given the right name.'
        : 'A program generates names and queries each one once. Typical causes are hosts in a domain that has moved, a scan, a wildcard check, and data smuggled out in names (DNS tunnelling). Caches do not help with new names, so every query reaches the authoritative server.',
      fix: [
        `Find the program in the pods above, and find out why it queries ${few ? listed([...seen], 2) : `names under ${domain}`}; then correct the name or restore the Service.`,
        cached !== undefined &&
          `If the upstream has ${cached.name} by now, a cache still denies it. Restart the DNS pods or wait, and shorten the negative TTL (cache { denial 9984 5 }).`,
        few
          ? 'Until then, make the program back off between retries. A negative cache (cache { denial }) keeps the load off the servers.'
          : `Until the program is found, limit the query rate per client, or answer ${domain === '.' ? 'such names' : domain} in the cluster.`,
        !few && 'If the program cannot be identified, treat it as an intrusion.',
      ],
      prove: `ndots query ${absent.samples[0]!.name}; ndots capture --from-ip ${clients[0]!.address}`,
      disproved:
        'the names exist on their authoritative servers (so the servers queried here give wrong answers)',
      exchanges: absent.samples.flatMap(({ exchanges }) => exchanges),
    };
  },
};

/** True if the lookup’s last name is another name with a search domain appended, which is also found or queried alone. */
function isMadeBySearch({ candidates }: SeenLookup, steps: SearchSteps): boolean {
  const last = candidates.at(-1) ?? '';
  if (steps.isOfFound(last)) return true;
  // If the capture shows the whole search, its last name is the one that was meant.
  return candidates.length === 1 && (steps.isOfAsked(last) || steps.isStep(last));
}
