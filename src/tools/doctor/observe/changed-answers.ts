/** External names whose answers change to one address for good. */
import { TYPE } from '../../../server/wire/iana.ts';
import { MIN_SAME_ANSWERS, TTL_ROUNDED_MS } from '../thresholds/answers.ts';
import type { AnswerSet } from './answer-sets.ts';
import type { NameView } from './name-view.ts';
import type { Observations } from './observations.ts';

/** A set of one address that replaced another answer, or none. */
export interface AnswerChange {
  readonly view: NameView;
  readonly set: AnswerSet;
  /** The source still had another answer then, milliseconds since 1970. */
  readonly beforeMs: number;
  readonly wasMissing: boolean;
}

export function externalViews({ names, domains }: Observations): readonly NameView[] {
  return names.list.filter(
    ({ name, type, sets }) => type === TYPE.A && sets !== null && !domains.isOfCluster(name),
  );
}

/** The sets of one address that replaced another answer for good. */
export function changesOf(view: NameView): readonly AnswerChange[] {
  const { list } = view.sets!;
  return list.flatMap((set) => {
    if (set.size !== 1) return [];
    const before = list.filter(({ server, hash }) => server === set.server && hash !== set.hash);
    // Whatever comes back later has not changed.
    if (before.some(({ lastMs }) => lastMs > set.firstMs + TTL_ROUNDED_MS)) return [];
    const wasMissing = before.length === 0 && view.lastNegativeMs < set.firstMs;
    if (before.length === 0 ? !wasMissing : set.count < MIN_SAME_ANSWERS) return [];
    // A cache gives the old answer for as long as its TTL lasts.
    const beforeMs = wasMissing
      ? view.lastNegativeMs - 1000 * view.longestTtl
      : Math.max(...before.map(({ lastMs, ttl }) => lastMs - 1000 * ttl));
    return [{ view, set, beforeMs, wasMissing }];
  });
}
