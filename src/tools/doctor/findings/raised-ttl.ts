/** A cache that hands answers on with a far greater TTL than it got them with. */
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
  /** True if the cache keeps an address that the source no longer gives. */
  readonly isStale: boolean;
}

/** A minimum TTL makes a cache keep what has changed long ago. */
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
    if (first === undefined) return excluded('no server gives a far greater TTL than another');
    const stale = found.filter(({ isStale }) => isStale);
    const names = [...new Set((stale.length > 0 ? stale : found).map(({ view }) => view.name))];
    for (const name of names) claims.names.add(name);
    const { view, source, cached, isStale } = first;
    return {
      code: this.code,
      title: this.title,
      severity: isStale ? 'critical' : 'warning',
      confidence: isStale ? 0.9 : 0.88,
      seen: [
        sentence(
          `${view.name} ${typeName(view.type)}: ${source.asked} says ${source.addresses.join(' ')} with a TTL of at most ${source.ttl} s, ${cached.asked} says ${cached.addresses.join(' ')} with up to ${cached.ttl} s`,
        ),
        ...(isStale
          ? [
              `${source.asked} has had the other address since ${clock(source.firstMs)} at the latest; ${cached.asked} still gives the old one at ${clock(cached.lastMs)}.`,
            ]
          : []),
        ...(names.length > 1 ? [sentence(`Names: ${listed(names)}`)] : []),
      ],
      why: 'The cache has a minimum TTL that is greater than the TTL of the record: cache { success SIZE TTL MINTTL } in a Corefile, cache-min-ttl in Unbound, min-cache-ttl in dnsmasq. After a change of the record, programs get the old address until the raised TTL expires, and connect to a host that is gone.',
      fix: [
        `Lower the minimum TTL in the cache of ${cached.asked} (CoreDNS defaults to 5 s), and restart the server to empty the cache.`,
      ],
      prove: `ndots query ${view.name} @${cached.asked}, and @${source.asked}: compare the TTLs`,
      disproved: 'both give the same address and similar TTLs',
      exchanges: [],
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
        !source.addresses.some((address) => cached.addresses.includes(address));
      // The cache may not fill from that server: the same address, or a newer one, proves that it does.
      if (isSame ? asks(observed, cached.server, source.asked) : isStale)
        return { view, source, cached, isStale };
    }
  return null;
}

/** True if the one server is a client of the other. */
function asks({ servers }: Observations, one: string, other: string): boolean {
  return servers.get(other)?.clients.has(one) ?? false;
}
