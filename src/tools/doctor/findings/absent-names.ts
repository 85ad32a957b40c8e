/**
 * Programs that ask for what is not there, over and over: a queue that was deleted, names that are
 * made up, a wrong domain.
 */
import type { NameView } from '../observe/name-view.ts';
import type { SearchDomains } from '../../capture/pair/search-walk.ts';
import type { SeenLookup } from '../../capture/pair/seen-exchange.ts';
import { TYPE } from '../../../server/wire/iana.ts';
import { absoluteName } from '../observe/absolute-name.ts';
import type { Claims } from '../observe/claims.ts';
import type { Observations } from '../observe/observations.ts';
import { excluded, unknown, type Finding, type FindingKind } from './finding.ts';
import { listed, percent, sentence, share } from '../texts.ts';
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
import { MIN_CASES, MIN_QUERIES } from '../thresholds/evidence.ts';

/** A large part of all queries is for names that do not exist, and no search path makes them. */
export const absentNames: FindingKind = {
  code: 'ND2008',
  title: 'Programs keep asking for names that do not exist',
  name: 'a storm of queries for names that do not exist',
  inCapture(observed, claims) {
    const { absent, total, names, seconds, domains } = observed;
    if (total.asked < MIN_QUERIES) return unknown('too few queries');
    const searched = absent.queries < ABSENT_SHARE * total.asked;
    if (
      absent.queries < MIN_ABSENT_QUERIES ||
      absent.queries < AS_WRITTEN_SHARE * total.asked ||
      absent.walked < (searched ? 2 : 1) * ABSENT_SHARE * total.asked
    )
      return (
        neverFound(observed, claims) ??
        excluded(
          `${percent(absent.queries, total.asked)} of the queries are for names that do not exist as they were written`,
        )
      );
    const made = madeBySearch(absent.samples, names.list, domains);
    if (made >= SEARCHED_SHARE * absent.samples.length)
      return excluded(
        'these names are names that are found, with a search domain behind them: a capture at one of several servers shows single steps of a walk',
      );
    const isKnown = ({ candidates }: SeenLookup): boolean =>
      claims.names.has(candidates.at(-1) ?? '');
    if (absent.samples.filter(isKnown).length >= SEARCHED_SHARE * absent.samples.length)
      return excluded('why these names are not there is known');
    const domain = absent.domain(DOMAIN_SHARE);
    const clients = absent.clients.list.toSorted((one, other) => other.queries - one.queries);
    const seen = new Set([...absent.names].filter((name) => isBelow(name, domain)));
    const few = seen.size <= FEW_NAMES_SHARE * absent.lookups;
    const example = absent.samples[0]!.name;
    const cached = names.list.find(
      ({ name, negativeTtls }) => seen.has(name) && countsDown(negativeTtls),
    );
    return {
      code: this.code,
      title: this.title,
      severity: 'warning',
      confidence: 0.9,
      seen: [
        `${share(absent.queries, total.asked)} queries got NXDOMAIN for a name as it was written${seconds === 0 ? '' : `, ${(absent.queries / Math.max(1, seconds)).toFixed(0)} a second`}${searched ? `, after the search path had been tried: ${share(absent.walked, total.asked)} queries in all` : '; no search path made these names'}.`,
        `Busiest clients: ${listed(
          clients.map(
            ({ address, queries }) => `${address} (${percent(queries, absent.queries)} of them)`,
          ),
        )}`,
        ...(few && cached !== undefined
          ? [
              `NXDOMAIN for ${cached.name} comes from a cache: its TTL counts down (${countdown(
                cached.negativeTtls,
              )
                .slice(0, 4)
                .map(({ ttl }) => ttl)
                .join(
                  ', ',
                )}). If the name has been created since, the cache denies it for up to ${cached.longestTtl} s.`,
            ]
          : []),
        `${few ? 'The same names' : 'Ever new names'}, ${seen.size} ${domain === '.' ? 'without a domain in common' : `below ${domain}`}: ${listed([...seen])}`,
      ],
      why: few
        ? 'A program asks for something that does not exist: a Service that was deleted or renamed, a namespace or domain that is misspelled. It retries without a pause, and fails until someone gives it the right name.'
        : 'A program makes up names and asks for each once: hosts of a domain that moved, a scan, a check for wildcards, or data that leaves through names (DNS tunnelling). Caches do not help against new names: each query reaches the authoritative server.',
      fix: [
        `Find the program in the pods above, and why it asks for ${few ? listed([...seen], 2) : `names below ${domain}`}; correct the name, or restore the Service.`,
        ...(few && cached !== undefined
          ? [
              `If ${cached.name} exists by now (ask the upstream), a cache still denies it: restart the DNS pods or wait, and cache denials for less time (cache { denial 9984 5 }).`,
            ]
          : []),
        few
          ? 'Until then, use retries with growing pauses; a negative cache (cache { denial }) keeps the load off the servers.'
          : `Limit the queries of each client, or answer ${domain === '.' ? 'such names' : domain} in the cluster, until it is found.`,
        ...(few ? [] : ['If the program is unknown, treat it as an intrusion.']),
      ],
      prove: `ndots query ${example}; ndots capture --from-ip ${clients[0]!.address}`,
      disproved: 'the names exist where they are served: then servers give wrong answers',
      exchanges: absent.samples.flatMap(({ exchanges }) => exchanges),
    };
  },
};

/** Names of which every lookup ended with NXDOMAIN, however few they are; null: there are none. */
function neverFound(
  { failedLookups, names, domains, affected }: Observations,
  claims: Claims,
): Finding | null {
  const list = [...failedLookups.names.entries].flatMap(([name, { failed, found }]) => {
    const view = names.get(name, TYPE.A);
    const { nxdomain = 0, asked = 0, lost = 0 } = view?.outcomes ?? {};
    const isMissing = nxdomain >= MIN_CASES && nxdomain + lost === asked;
    // A lookup whose first step is found has the whole name only.
    const isKnown = ['', ...domains.all].some((domain) => {
      const whole = name + domain;
      return claims.names.has(whole) || (names.get(whole, TYPE.A)?.outcomes.found ?? 0) > 0;
    });
    // Names such as `_ta-4f66.` (RFC 8145) are asked for whether they exist or not.
    const isOptional = name.startsWith('_') || domains.domainOf(name) !== null;
    const isOpen = isMissing && !isKnown && !isOptional;
    return failed >= MIN_CASES && found === 0 && isOpen ? { name, failed } : [];
  });
  if (list.length === 0) return null;
  const keys = new Set(list.map(({ name }) => name));
  const all = listed([...keys]);
  return {
    code: absentNames.code,
    title: absentNames.title,
    severity: 'warning',
    confidence: 0.8,
    seen: [
      sentence(
        `Every lookup of these names ended with NXDOMAIN, with each search domain and as written: ${listed(list.map(({ name, failed }) => `${name} (${failed} lookups)`))}`,
      ),
    ],
    why: 'A name or its namespace is misspelled, or the Service or record was deleted or does not exist yet. Its program fails each time.',
    fix: [`Correct ${all}, or create what they name (kubectl get services -A).`],
    prove: `ndots query ${list[0]!.name} with each search domain appended`,
    disproved: 'the names exist where they are served: then servers give wrong answers',
    exchanges: affected.flatMap((lookup) =>
      keys.has(absoluteName(lookup.name)) ? lookup.exchanges : [],
    ),
    affected: [...keys],
  };
}

/**
 * Lookups whose last name is another name with a search domain appended, where that name is found
 * or asked for alone as well.
 */
function madeBySearch(
  lookups: readonly SeenLookup[],
  names: readonly NameView[],
  domains: SearchDomains,
): number {
  const found = new Set(
    names.filter(({ outcomes }) => outcomes.found > 0).map(({ name }) => name.slice(0, -1)),
  );
  const asked = new Set(names.map(({ name }) => name.slice(0, -1)));
  return lookups.filter(({ candidates }) => {
    const last = candidates.at(-1) ?? '';
    if (hasStem(last, found)) return true;
    // Where a walk is seen, its last name is what was meant.
    return candidates.length === 1 && (hasStem(last, asked) || isStep(last, asked, domains));
  }).length;
}

/** A name of the cluster as search paths are written: the namespace, `svc`, and the rest. */
const OF_NAMESPACE = /^(.+)\.[^.]+\.svc\.(.+)\.$/;
const OF_SERVICES = /^(.+)\.svc\.(.+)\.$/;

/**
 * True if a cluster search domain follows a cluster name, or a name that is queried with the next domain of the path.
 */
function isStep(name: string, asked: ReadonlySet<string>, domains: SearchDomains): boolean {
  for (let at = name.indexOf('.'); at >= 0 && at < name.length - 1; at = name.indexOf('.', at + 1))
    if (domains.isOfCluster(name.slice(0, at + 1))) return true;
  if (!domains.isOfCluster(name)) return false;
  const [, stem, rest] = OF_NAMESPACE.exec(name) ?? [];
  if (asked.has(`${stem}.svc.${rest}`) || asked.has(`${stem}.${rest}`)) return true;
  const [, bare, cluster] = OF_SERVICES.exec(name) ?? [];
  return asked.has(`${bare}.${cluster}`);
}

function hasStem(name: string, known: ReadonlySet<string>): boolean {
  for (let at = name.indexOf('.'); at >= 0 && at < name.length - 1; at = name.indexOf('.', at + 1))
    if (known.has(name.slice(0, at))) return true;
  return false;
}
