/** Names with TTL 0, which no cache may keep. */
import { typeName } from '../../../server/wire/iana.ts';
import type { AnswerSet } from '../observe/answer-sets.ts';
import type { NameView } from '../observe/name-view.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { listed, sentence, share, took } from '../texts.ts';
import { FAST_BESIDE, UNCACHED } from '../thresholds/answers.ts';

interface Uncached {
  readonly view: NameView;
  readonly sets: readonly AnswerSet[];
  readonly count: number;
  readonly meanMs: number;
  /** The highest TTL, seconds. */
  readonly ttl: number;
}

/** The clients that query these names. */
function askersOf(found: readonly Uncached[]): readonly string[] {
  return [...new Set(found.flatMap(({ view }) => view.lastClients))];
}

/** Each lookup of a name with TTL 0 takes as long as the upstream. */
export const uncachedName: FindingKind = {
  code: 'ND4020',
  title: 'Each lookup of a name waits for the upstream because its TTL is 0',
  name: 'names that cannot be cached',
  inCapture(observed, claims) {
    const views = observed.names.list.filter(({ sets }) => sets !== null);
    if (views.length === 0) return unknown('no address was answered');
    const found = views
      .filter(({ name }) => !claims.names.has(name) && !observed.domains.isOfCluster(name))
      .flatMap((view) => uncached(view) ?? [])
      .toSorted((one, other) => other.count * other.meanMs - one.count * one.meanMs);
    const [first] = found;
    if (first === undefined) return excluded('no slow name has TTL 0');
    const others = views.filter(({ name }) => !found.some(({ view }) => view.name === name));
    const cached = others.flatMap(({ sets }) => sets!.list.filter(({ ttl }) => ttl > 0));
    const fine = cached.reduce((sum, { count }) => sum + count, 0);
    const fineMs = cached.reduce((sum, { tookMs }) => sum + tookMs, 0) / Math.max(fine, 1);
    // An upstream gets hardly any queries for cached names.
    const asked = found.reduce((sum, { count }) => sum + count, 0);
    const isMost = asked >= UNCACHED.share * (asked + fine) && asked >= UNCACHED.alone;
    if (!isMost && (fine < UNCACHED.others || fineMs > FAST_BESIDE * first.meanMs))
      return excluded('names with a TTL are just as slow');
    const names = [...new Set(found.map(({ view }) => view.name))];
    return {
      code: this.code,
      title:
        first.ttl === 0
          ? this.title
          : `A name has a TTL of ${first.ttl} s, so nearly every lookup of it waits for the upstream`,
      severity: 'warning',
      confidence: 0.92,
      seen: [
        ...found
          .slice(0, UNCACHED.listed)
          .map(
            ({ view, count, meanMs, ttl }) =>
              `${count} answers for ${view.name} ${typeName(view.type)} had TTL ${ttl} and took ${took(meanMs)} on average.`,
          ),
        isMost && fine < UNCACHED.others
          ? `These are ${share(asked, asked + fine)} answers to ${listed(askersOf(found))}. Other names can be cached, but never these.`
          : `${fine} answers for other names, which have a TTL and are cached, took ${took(fineMs)} on average.`,
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
      exchanges: [],
      affected: names,
    };
  },
};

/** A name’s slow answers with TTL 0 or hardly more; null if they are few or quick, or have a higher TTL. */
function uncached(view: NameView): Uncached | null {
  const { list } = view.sets!;
  const ttl = list.reduce((max, each) => Math.max(max, each.ttl), 0);
  if (ttl > UNCACHED.ttl) return null;
  const count = list.reduce((sum, each) => sum + each.count, 0);
  const meanMs = list.reduce((sum, { tookMs }) => sum + tookMs, 0) / Math.max(count, 1);
  if (count < UNCACHED.answers || meanMs < UNCACHED.meanMs) return null;
  return { view, sets: list, count, meanMs, ttl };
}
