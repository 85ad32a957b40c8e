/** Names with TTL 0, which no cache may keep. */
import { typeName } from '../../../server/wire/iana.ts';
import { explainLateness, uncachedNames } from '../observe/uncached-names.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { listed, sentence, share, took } from '../texts.ts';
import { UNCACHED } from '../thresholds/answers.ts';
import { SLOW_LOOKUPS } from '../thresholds/lateness.ts';

export const uncachedName: FindingKind = {
  code: 'ND4020',
  title: 'Each lookup of a name waits for the upstream because its TTL is 0',
  name: 'names that cannot be cached',
  inCapture(observed, claims) {
    if (!observed.names.list.some(({ sets }) => sets !== null))
      return unknown('no address was answered');
    const uncached = uncachedNames(observed, claims);
    if (uncached === null)
      return excluded('no slow name has TTL 0, or names with a TTL are just as slow');
    const { found, asked, fine, fineMs, isMost } = uncached;
    const first = found[0]!;
    const isCause = explainLateness(uncached, observed);
    const { slowLookups, lookups } = observed;
    const names = [...new Set(found.map(({ view }) => view.name))];
    return {
      title:
        first.ttl === 0
          ? names.length === 1
            ? `Each lookup of ${names[0]!.slice(0, -1)} waits for the upstream because its TTL is 0`
            : this.title
          : `A name has a TTL of ${first.ttl} s, so nearly every lookup of it waits for the upstream`,
      severity: isCause && slowLookups >= SLOW_LOOKUPS * lookups ? 'critical' : 'warning',
      confidence: 0.92,
      seen: [
        ...found
          .slice(0, UNCACHED.listed)
          .map(
            ({ view, count, meanMs, ttl }) =>
              `${count} answers for ${view.name} ${typeName(view.type)} had TTL ${ttl} and took ${took(meanMs)} on average.`,
          ),
        isMost && fine < UNCACHED.others
          ? `These are ${share(asked, asked + fine)} answers to ${listed(found.flatMap(({ view }) => view.lastClients))}. Other names can be cached, but never these.`
          : `${fine} answers for other names, which have a TTL and are cached, took ${took(fineMs)} on average.`,
        isCause &&
          `${share(slowLookups, lookups)} lookups took a second or more, and (nearly) all late replies in them are for ${names.length === 1 ? 'this name' : 'these names'}.`,
      ],
      why: 'TTL 0 means that caches must not keep an answer (RFC 1035, section 3.2.1), and a TTL of a second or two has nearly the same effect. Each lookup goes to the upstream while the program waits. A cache without a minimum TTL cannot help.',
      fix: [
        sentence(
          `Ask the owner of ${listed(names)} to set a TTL. Even 5 s avoids nearly all these queries`,
        ),
        'Set cache { success 9984 3600 5 }, a minimum TTL of 5 s, which is CoreDNS’s default. Or keep connections open in the program, so that it looks up the name less often.',
      ],
      prove: `run ndots query ${first.view.name} twice; the TTL is 0, and the second query is as slow as the first`,
      disproved: 'the second query is answered at once',
      affected: names,
    };
  },
};
