/** Parts of the Now page that top and the console share. */
import type {
  ChangeRow,
  Series,
  ViewHead,
  ViewName,
  WastePlan,
} from '../../../tools/watch/view.ts';
import { printShare } from './figures.ts';

/** Limit on listed workloads and changes. Other pages list all of them. */
export const NOW_LISTED = 8;

/** Said instead of "no faults" while there is nothing to judge. */
export const NOTHING_SEEN = 'No query has been seen.';

/** True if no input has had a query, including inputs that were dropped. */
export function seesNothing({
  inputs,
  detailFromMs,
}: Pick<ViewHead<ViewName>, 'inputs' | 'detailFromMs'>): boolean {
  return detailFromMs === null && inputs.every(({ queries }) => queries === 0);
}

/** A step that is shorter than this, in milliseconds, has too few queries for a rate. */
const STEP_LEAST_MS = 1000;

const rateNames = ['queries', 'lookups', 'lost', 'failed', 'wasted'] as const;

export interface Courses extends Pick<Series, 'fromMs' | 'stepMs' | 'p50' | 'p99'> {
  /** Per second. */
  readonly rates: { readonly [Name in (typeof rateNames)[number]]: readonly number[] };
}

/**
 * Converts a series to rates. The last step has not ended yet, so its counts are divided by the time that it has
 * lasted. Otherwise, every chart would end with a drop.
 */
export function coursesOf(series: Series, toMs: number): Courses {
  const { fromMs, stepMs, queries, p50, p99 } = series;
  const steps = queries.length;
  const lastMs = Math.min(stepMs, toMs - fromMs - (steps - 1) * stepMs);
  const isShown = steps === 1 || lastMs >= STEP_LEAST_MS;
  const shown = <T>(values: readonly T[]): readonly T[] => (isShown ? values : values.slice(0, -1));
  const perSecond = (counts: readonly number[]): readonly number[] =>
    shown(counts).map(
      (count, at) => count / ((at === steps - 1 ? Math.max(lastMs, STEP_LEAST_MS) : stepMs) / 1000),
    );
  const rates = Object.fromEntries(rateNames.map((name) => [name, perSecond(series[name])]));
  return { fromMs, stepMs, p50: shown(p50), p99: shown(p99), rates: rates as Courses['rates'] };
}

/**
 * The change that saves a workload's wasted queries; empty if it is not known. A plan covers only the most queried names,
 * so its counts differ from the workload's.
 */
export function planText(plan: WastePlan | null): string {
  if (plan === null) return '';
  const { ndots, queriesNow: now, queriesThen: then, dotted, broken } = plan;
  if (ndots !== null) return `ndots:${ndots} saves ${printShare(now === 0 ? 0 : 1 - then / now)}`;
  const [first] = dotted;
  if (first !== undefined) return `a final dot: ${first.name}`;
  return broken.length > 0 ? `a lower ndots would break ${broken[0]}` : '';
}

/** The kind of change, in a word. A finding is found some time after the fault began. */
export const changeWords: Readonly<Record<ChangeRow['kind'], string>> = {
  'finding-began': 'found',
  'finding-ended': 'ended',
  'server-new': 'new',
  'server-gone': 'gone',
  'server-back': 'back',
  'pod-gone': 'gone',
  rate: 'rate',
  reload: 'reload',
  input: 'input',
};
