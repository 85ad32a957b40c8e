/** Zones that are empty all at once. */
import { clock, excluded, listed, sentence, unknown, type Rule } from './finding.ts';

/** So many names, each of a type, are a zone and not one name. */
const LEAST = 4;
const NAMES = 3;
/** So much of a name’s negative answers are of one time. */
const MOST = 0.7;
const TOGETHER_MS = 60_000;
/** What comes back sooner was gone by turns, milliseconds; it is back if so many of the names are. */
const AWAY_MS = 1500;
const BACK = 0.5;

/** Names that were found are all gone within a minute, for good or for a while. */
export const suddenNegatives: Rule = {
  code: 'ND4006',
  title: 'Names that existed are gone, many at once: the zone upstream is empty or broken',
  name: 'a zone that was emptied',
  check(observed, claims) {
    const known = observed.names.list.filter(({ outcomes }) => outcomes.found >= 1);
    if (known.length < LEAST) return unknown('too few names were found in the first place');
    const gone = known.flatMap((view) => {
      const { absence, outcomes } = view;
      if (absence === null || absence.count < 2) return [];
      // Where servers differ, or caches have it by turns, there is one short time after the other.
      const negative = outcomes.nxdomain + outcomes.nodata;
      return absence.count >= MOST * negative ? [{ ...absence, view }] : [];
    });
    if (gone.length < LEAST) return excluded('names that were found are found later, too');
    const middle = median(gone.map(({ fromMs }) => fromMs));
    const together = gone.filter(({ fromMs }) => Math.abs(fromMs - middle) < TOGETHER_MS);
    if (together.length < LEAST || new Set(together.map(({ view }) => view.name)).size < NAMES)
      return excluded('names do not go at once');
    const back = together.filter(({ view, toMs }) => view.lastFoundMs > toMs);
    const isBack = back.length >= BACK * together.length;
    if (isBack && median(together.map(({ fromMs, toMs }) => toMs - fromMs)) < AWAY_MS)
      return excluded('names that were found are found later, too');
    for (const { view } of together) claims.names.add(view.name);
    const fromMs = together.reduce((least, each) => Math.min(least, each.fromMs), Infinity);
    const toMs = together.reduce((most, each) => Math.max(most, each.toMs), 0);
    const names = [...new Set(together.map(({ view }) => view.name))];
    const keys = new Set(names);
    return {
      code: this.code,
      title: this.title,
      severity: 'critical',
      confidence: 0.9,
      seen: [
        sentence(
          isBack
            ? `${names.length} names were answered until about ${clock(fromMs)}, did not exist until about ${clock(toMs)}, and are there again: ${listed(names)}`
            : `${names.length} names were answered until about ${clock(fromMs)} and do not exist from then on: ${listed(names)}`,
        ),
      ],
      why: 'The answers are quick and look right, but they are wrong: who is responsible for these names published an empty or broken zone (a failed automation, a split view that changed). Servers and clients believe it, and cache it.',
      fix: [
        'Tell the owner of the zone; go back to its last good version.',
        'Until then: hosts or a template with the last known addresses for what cannot wait.',
        'serve_stale with a policy that prefers old answers, once it is there: cache { serve_stale }',
      ],
      prove: `ndots query ${names[0]} at a public resolver, and at the zone’s own servers`,
      disproved: 'the names were taken away on purpose',
      exchanges: observed.affected.flatMap((lookup) =>
        lookup.exchanges.filter(({ name }) => keys.has(name)),
      ),
    };
  },
};

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[values.length >> 1]!;
}
