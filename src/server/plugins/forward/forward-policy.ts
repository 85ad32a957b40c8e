/** The order in which upstreams are tried. */
import type { Random } from '../../base/random.ts';
import { upstreamOrder, type UpstreamOrder } from '../../engine/contract/upstream-order.ts';
import type { ForwardTarget } from './forward-target.ts';

/** Which upstream a query is sent to first, as `policy` names it. */
export type ForwardPolicy = UpstreamOrder | 'latency';

/**
 * One query in so many starts at random under `latency`, so that a slow upstream that got fast is
 * noticed.
 */
const EXPLORE = 20;

/**
 * Gives the order in which upstreams are tried for a query. The result may be the list itself: not
 * to be changed.
 */
export function makePolicy(
  policy: ForwardPolicy,
  random: Random,
): (targets: readonly ForwardTarget[]) => readonly ForwardTarget[] {
  if (policy !== 'latency') return upstreamOrder(policy, random);
  const shuffled = upstreamOrder<ForwardTarget>('random', random);
  return (targets) => {
    if (targets.length < 2) return targets;
    // Upstreams whose latency is unknown are tried first.
    return random.integer(EXPLORE) === 0
      ? shuffled(targets)
      : targets.toSorted((a, b) => a.latencyMs - b.latencyMs);
  };
}
