/** The order in which upstreams are tried. */
import type { Random } from '../../base/random.ts';
import { upstreamOrder, type UpstreamOrder } from '../../engine/contract/upstream-order.ts';
import type { ForwardUpstream } from './forward-upstream.ts';

/** The choices of `policy` for the first upstream. */
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
): (upstreams: readonly ForwardUpstream[]) => readonly ForwardUpstream[] {
  if (policy !== 'latency') return upstreamOrder(policy, random);
  const shuffled = upstreamOrder<ForwardUpstream>('random', random);
  return (upstreams) => {
    if (upstreams.length < 2) return upstreams;
    // Upstreams whose latency is unknown are tried first.
    return random.integer(EXPLORE) === 0
      ? shuffled(upstreams)
      : upstreams.toSorted((a, b) => a.latencyMs - b.latencyMs);
  };
}
