/** Names that do not exist according to one address family but do according to the other. */
import { TYPE } from '../../../server/wire/iana.ts';
import type { NameView } from '../observe/name-view.ts';
import type { Observations } from '../observe/observations.ts';
import { serversOfNames } from '../observe/servers-of-names.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { listed } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';

/** A always gets NXDOMAIN and AAAA never does, although existence does not depend on the type (RFC 8020). */
export const missingA: FindingKind = {
  code: 'ND8006',
  title: 'A queries always get NXDOMAIN, while AAAA queries find the same name',
  name: 'names that are missing only for A',
  inCapture(observed, claims) {
    const { names } = observed;
    if (!names.list.some(({ type }) => type === TYPE.AAAA))
      return unknown('no AAAA query was seen');
    const found = names.list.flatMap((a) => {
      if (a.type !== TYPE.A || claims.names.has(a.name)) return [];
      const aaaa = names.get(a.name, TYPE.AAAA);
      return aaaa !== undefined && isSplit(a, aaaa) ? [{ a, aaaa }] : [];
    });
    const [first] = found;
    if (first === undefined) return excluded('for every name, A and AAAA agree whether it exists');
    const list = found.map(({ a }) => a.name);
    for (const name of list) claims.names.add(name);
    const isSearched = list.some((name) => observed.domains.domainOf(name) !== null);
    const isFound = found.some(({ aaaa }) => aaaa.outcomes.found > 0);
    const { a, aaaa } = found.find((each) => each.aaaa.outcomes.found > 0) ?? first;
    const servers = [...serversOfNames([a, aaaa])];
    const has =
      aaaa.outcomes.found > 0 ? 'has an answer' : 'exists without a record of that type (NODATA)';
    return {
      // Some servers suppress AAAA with an empty answer for every name, which most resolvers accept.
      severity: isFound ? 'critical' : 'warning',
      confidence: isFound ? 0.92 : 0.75,
      seen: [
        `For ${listed(list)}, A always got NXDOMAIN (${a.outcomes.nxdomain} times), while AAAA ${has} (${aaaa.outcomes.found + aaaa.outcomes.nodata} times)`,
        `The replies came from ${listed(servers)}.`,
      ],
      why: !isFound
        ? 'AAAA gets an empty answer for names that do not exist, usually because a template or a filter suppresses AAAA for all names. musl (Alpine) reads this as "the name exists" and stops its search there, while glibc and Go continue.'
        : isSearched
          ? 'The name has a search domain appended. autopath completes it for one query but not for the other, or a cache stored the two replies under different conditions. glibc stops at this name because AAAA was not NXDOMAIN, so a program without IPv6 gets no address.'
          : 'NXDOMAIN denies the name for all types (RFC 8020), and resolvers and caches that follow this drop the other family, too. Possible causes are a rewrite or a template for one type, a load balancer that writes its own replies, or a broken authoritative server.',
      fix: [
        !isFound
          ? 'Answer AAAA for missing names with NXDOMAIN. template { rcode NXDOMAIN } also denies names that exist, so forward AAAA queries and filter the answers, or leave them unchanged.'
          : isSearched
            ? 'If the Corefile has autopath @kubernetes, remove it, or replace it with autopath @name (ndots), which completes both families alike. Then restart the DNS pods to clear the cache.'
            : 'Configure the server to answer A with NOERROR, no address and an SOA record where only AAAA exists.',
        'In the Corefile, look for template, rewrite and view blocks that apply only to A or only to AAAA.',
      ],
      prove: `run ndots query ${a.name} A ${a.name} AAAA @${servers[0] ?? 'SERVER'}; either both or neither should get NXDOMAIN`,
      disproved: 'A and AAAA agree when each DNS pod is queried directly',
      exchanges: exchangesOf(observed, new Set(list)),
      affected: list,
    };
  },
};

/** True if the one type was always missing and the other never, at the same time. */
function isSplit(a: NameView, aaaa: NameView): boolean {
  const [missing, there] = [a.outcomes, aaaa.outcomes];
  const exists = there.found + there.nodata;
  return (
    missing.nxdomain >= MIN_CASES &&
    missing.found + missing.nodata === 0 &&
    exists >= MIN_CASES &&
    there.nxdomain === 0
  );
}

function exchangesOf(
  { affected, searched }: Observations,
  names: ReadonlySet<string>,
): Observations['losses'] {
  return [...new Set([...affected, ...searched])].flatMap(({ exchanges }) =>
    exchanges.filter(({ name }) => names.has(name)),
  );
}
