/** Names that are asked for before they exist. */
import type { NameView, NegativeTtl } from '../evidence/name-view.ts';
import type { Observations } from '../evidence/observations.ts';
import {
  clock,
  excluded,
  listed,
  unknown,
  type Claims,
  type Finding,
  type Rule,
} from './finding.ts';

/** So often, and for so long, was a name missing, and so often found afterwards; more names at once are no new ones. */
const UNSEEN = { asked: 8, lastsMs: 2000, found: 3, names: 3 };

/** A name that was asked for before it existed stays missing for as long as that was remembered. */
export const newName: Rule = {
  code: 'ND8003',
  title: 'A new name stays invisible: that it was missing is cached',
  name: 'a cached "no such name"',
  check(observed, claims) {
    const cached = observed.names.list.filter(
      ({ name, negativeTtls, outcomes, lastNegativeMs, firstFoundMs, cameAtEach }) => {
        if (claims.names.has(name)) return false;
        if (outcomes.nxdomain < 3 || outcomes.found === 0) return false;
        // Of several servers each forgets at its own time.
        if (firstFoundMs < lastNegativeMs && !cameAtEach) return false;
        return countsDown(negativeTtls);
      },
    );
    if (cached.length === 0) {
      const unseen = withoutTtl(observed, claims);
      const [one] = unseen;
      for (const { name } of unseen) claims.names.add(name);
      if (one !== undefined)
        return {
          ...told(observed, unseen),
          confidence: 0.6,
          seen: [
            `${namesOf(unseen)}: ${one.outcomes.nxdomain} times NXDOMAIN from ${clock(one.firstNegativeMs)} to ${clock(one.lastNegativeMs)}, then found at ${clock(one.firstFoundMs)}, and ever since.`,
            'Of these answers the capture has only the beginning: whether their TTL counted down, as that of what is remembered does, cannot be seen (tcpdump -s 0).',
          ],
        };
    }
    const candidates = observed.names.list.filter(({ negativeTtls }) => negativeTtls.length >= 3);
    if (candidates.length === 0)
      return unknown('no name was asked for again and again while it was missing');
    if (cached.length === 0) return excluded('names that were missing are not found later');
    const [first] = cached;
    for (const { name } of cached) claims.names.add(name);
    return {
      ...told(observed, cached),
      confidence: 0.9,
      seen: [
        `${namesOf(cached)}: NXDOMAIN up to ${clock(first!.lastNegativeMs)} with a TTL that counts down (${first!.negativeTtls
          .slice(0, 5)
          .map(({ ttl }) => ttl)
          .join(', ')}), then found at ${clock(first!.firstFoundMs)}.`,
      ],
    };
  },
};

/** Names that were missing, and asked for again and again, until they were found for good, in a capture that has not the end of negative answers, and so no TTL. Empty: there are none, or too many to be new. */
function withoutTtl({ names, cut }: Observations, claims: Claims): readonly NameView[] {
  if (cut.messages === 0) return [];
  const found = names.list.filter(
    ({ name, outcomes, negativeTtlCount, firstNegativeMs, lastNegativeMs, firstFoundMs }) =>
      !claims.names.has(name) &&
      negativeTtlCount === 0 &&
      outcomes.nxdomain >= UNSEEN.asked &&
      outcomes.found >= UNSEEN.found &&
      lastNegativeMs - firstNegativeMs >= UNSEEN.lastsMs &&
      firstFoundMs > lastNegativeMs,
  );
  return new Set(found.map(({ name }) => name)).size <= UNSEEN.names ? found : [];
}

/** What is the same of each. */
function told(
  observed: Observations,
  cached: readonly NameView[],
): Omit<Finding, 'seen' | 'confidence'> {
  const keys = new Set(cached.map(({ name }) => name));
  return {
    code: 'ND8003',
    title: 'A new name stays invisible: that it was missing is cached',
    severity: 'warning',
    why: 'Somebody asked before the name existed. Each cache on the way (the node’s, CoreDNS’s, the program’s own) keeps "no such name" for the TTL that came with it, and says so while the name has long been there.',
    fix: [
      'cache { denial 9984 5 } for the cluster’s zone, or cache { disable denial cluster.local } (kubeadm’s Corefile does), on the node-local cache, too.',
      'Create the service before its clients start, or have them ask again.',
    ],
    prove: `ndots query ${cached[0]!.name} @POD for each DNS pod: those that say NXDOMAIN show a TTL that counts down`,
    disproved: 'the TTL does not count down: then the server really does not have the name yet',
    exchanges: observed.affected.flatMap((lookup) =>
      lookup.exchanges.filter(({ name }) => keys.has(name)),
    ),
  };
}

function namesOf(cached: readonly NameView[]): string {
  return listed([...new Set(cached.map(({ name }) => name))]);
}

/** Whether the TTLs of one server go down with time, as those of a cached answer do. */
function countsDown(ttls: readonly NegativeTtl[]): boolean {
  for (const [, own] of Map.groupBy(ttls, ({ server }) => server)) {
    let falls = 0;
    for (let at = 1; at < own.length; at++) {
      const elapsed = (own[at]!.ms - own[at - 1]!.ms) / 1000;
      const fell = own[at - 1]!.ttl - own[at]!.ttl;
      if (fell > 0 && Math.abs(fell - elapsed) <= 1.5) falls++;
    }
    if (falls >= 2) return true;
  }
  return false;
}
