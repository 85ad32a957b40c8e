/** A cache that returns answers with a far greater TTL than it received. */
import { typeName } from '../../../server/wire/iana.ts';
import type { AnswerSet } from '../observe/answer-sets.ts';
import type { NameView } from '../observe/name-view.ts';
import type { Observations } from '../observe/observations.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { clock, listed, sentence } from '../texts.ts';
import { RAISED_TTL } from '../thresholds/answers.ts';

interface Raised {
  readonly view: NameView;
  readonly source: AnswerSet;
  readonly cached: AnswerSet;
  /** True if the cache keeps an address that the source no longer returns. */
  readonly isStale: boolean;
}

/** A minimum TTL makes a cache keep answers that changed long ago. */
export const raisedTtl: FindingKind = {
  code: 'ND8009',
  title: 'A cache keeps answers far longer than their TTL allows',
  name: 'a cache that raises TTLs',
  inCapture(observed, claims) {
    const views = observed.names.list.filter(
      ({ sets, name }) => sets !== null && !claims.names.has(name),
    );
    if (!views.some(({ sets }) => new Set(sets!.list.map(({ asked }) => asked)).size > 1))
      return unknown('no name was answered by two servers');
    const found = views.flatMap((view) => raised(view, observed) ?? []);
    const [first] = found.toSorted((one, other) => Number(other.isStale) - Number(one.isStale));
    if (first === undefined) return excluded('no server returns a far greater TTL than another');
    const stale = found.filter(({ isStale }) => isStale);
    const names = [...new Set((stale.length > 0 ? stale : found).map(({ view }) => view.name))];
    for (const name of names) claims.names.add(name);
    const { view, source, cached, isStale } = first;
    return {
      severity: isStale ? 'critical' : 'warning',
      confidence: isStale ? 0.9 : 0.88,
      seen: [
        sentence(
          `${view.name} ${typeName(view.type)}: ${source.asked} returns ${source.addresses.join(' ')} with a TTL of at most ${source.ttl} s, while ${cached.asked} returns ${cached.addresses.join(' ')} with a TTL of up to ${cached.ttl} s`,
        ),
        isStale &&
          `${source.asked} has had the new address since ${clock(source.firstMs)} at the latest, but ${cached.asked} still returned the old one at ${clock(cached.lastMs)}.`,
        names.length > 1 && sentence(`The affected names are ${listed(names)}`),
      ],
      why: 'The cache’s minimum TTL is greater than the record’s TTL (cache { success SIZE TTL MINTTL } in a Corefile, cache-min-ttl in Unbound, min-cache-ttl in dnsmasq). After the record changes, programs get the old address until the raised TTL expires, and connect to a host that is gone.',
      fix: [
        `Lower the minimum TTL in the cache of ${cached.asked} (CoreDNS defaults to 5 s), and restart the server to empty the cache.`,
      ],
      prove: `run ndots query ${view.name} @${cached.asked}, then again with @${source.asked}, and compare the TTLs`,
      disproved: 'both servers return the same address with similar TTLs',
      affected: names,
    };
  },
};

function raised(view: NameView, observed: Observations): Raised | null {
  const { list } = view.sets!;
  for (const cached of list)
    for (const source of list) {
      if (source.asked === cached.asked || cached.asked === source.server) continue;
      const most = Math.max(
        ...list.flatMap(({ asked, ttl }) => (asked === source.asked ? ttl : [])),
      );
      if (cached.ttl < RAISED_TTL.seconds || cached.ttl < RAISED_TTL.times * most) continue;
      const isSame = source.hash === cached.hash;
      const isStale =
        !isSame &&
        cached.lastMs > source.firstMs &&
        // An answer that begins after the other’s last one is newer.
        cached.firstMs < source.lastMs &&
        !source.addresses.some((address) => cached.addresses.includes(address));
      // The cache may use another server. The same address, or a newer one, proves that it uses this one.
      if (isSame ? asks(observed, cached.server, source.asked) : isStale)
        return { view, source, cached, isStale };
    }
  return null;
}

/** True if one of the servers is a client of the other. */
function asks({ servers }: Observations, one: string, other: string): boolean {
  return servers.get(other)?.clients.has(one) ?? false;
}
