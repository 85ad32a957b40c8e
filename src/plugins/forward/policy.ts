/** The order in which upstreams are tried. */
import type { Random } from '../../base/random.ts';
import type { Target } from './target.ts';

/** Which upstream a query is sent to first, as `policy` names it. */
export type Policy = 'random' | 'round_robin' | 'sequential' | 'latency';

/** One query in so many starts at random under `latency`, so that a slow upstream that got fast is noticed. */
const EXPLORE = 20;

/** Gives the order in which upstreams are tried for a query. The result may be the list itself: not to be changed. */
export function makePolicy(
  policy: Policy,
  random: Random,
): (targets: readonly Target[]) => readonly Target[] {
  let turn = 0;
  const shuffled = (targets: readonly Target[]): readonly Target[] => shuffle([...targets], random);
  const order = (targets: readonly Target[]): readonly Target[] => {
    switch (policy) {
      case 'sequential':
        return targets;
      case 'round_robin': {
        const first = turn++ % targets.length;
        return [...targets.slice(first), ...targets.slice(0, first)];
      }
      case 'latency':
        // What is not known yet is tried first.
        return random.integer(EXPLORE) === 0
          ? shuffled(targets)
          : targets.toSorted((a, b) => a.latencyMs - b.latencyMs);
      default:
        return shuffled(targets);
    }
  };
  return (targets) => (targets.length < 2 ? targets : order(targets));
}

function shuffle<T>(list: T[], random: Random): T[] {
  for (let last = list.length - 1; last > 0; last--) {
    const other = random.integer(last + 1);
    const moved = list[last]!;
    list[last] = list[other]!;
    list[other] = moved;
  }
  return list;
}
