import { clock, excluded, listed, sentence, unknown, type Rule } from './finding.ts';

/** Names that were found are all gone within a minute. */
export const suddenNegatives: Rule = {
  code: 'ND4006',
  title: 'Names that existed are gone, many at once: the zone upstream is empty or broken',
  name: 'a zone that was emptied',
  check(observed) {
    const known = observed.names.list.filter(({ outcomes }) => outcomes.found >= 1);
    if (known.length < 4) return unknown('too few names were found in the first place');
    const gone = known.filter(
      ({ lastFoundMs, firstNegativeMs, lastNegativeMs, outcomes }) =>
        outcomes.nxdomain + outcomes.nodata >= 2 &&
        firstNegativeMs > lastFoundMs &&
        lastNegativeMs > lastFoundMs,
    );
    if (gone.length < 4) return excluded('names that were found are found later, too');
    const times = gone.map(({ firstNegativeMs }) => firstNegativeMs).toSorted((a, b) => a - b);
    const middle = times[times.length >> 1]!;
    const together = gone.filter(
      ({ firstNegativeMs }) => Math.abs(firstNegativeMs - middle) < 60_000,
    );
    if (together.length < 4) return excluded('names do not go at once');
    const names = together.map(({ name }) => name);
    const keys = new Set(names);
    return {
      code: this.code,
      title: this.title,
      severity: 'critical',
      confidence: 0.9,
      seen: [
        sentence(
          `${together.length} names were answered until about ${clock(times[0]!)} and do not exist from then on: ${listed([...keys])}`,
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
