/** The growth of counters of DNS pods between two scrapes. */
import type { SeriesLabels } from '../../../server/metrics/read-exposition.ts';
import type { Measured } from './measure.ts';

/** The growth of a counter; a restarted one counts from zero. */
export function grown(
  { before, after }: Pick<Measured, 'before' | 'after'>,
  name: string,
  fits?: (labels: SeriesLabels) => boolean,
): number {
  const [from, to] = [before.sum(name, fits), after.sum(name, fits)];
  return to < from ? to : to - from;
}

/** The same by the value of a label. */
export function grownBy(
  { before, after }: Pick<Measured, 'before' | 'after'>,
  name: string,
  label: string,
): ReadonlyMap<string, number> {
  const from = before.by(name, label);
  return new Map(
    [...after.by(name, label)].map(([key, to]) => {
      const was = from.get(key) ?? 0;
      return [key, to < was ? to : to - was] as const;
    }),
  );
}
