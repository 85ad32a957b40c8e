/** The order in which upstreams are tried. */
import type { Random } from '../../base/random.ts';
import { upstreamOrder, type UpstreamOrder } from '../../engine/contract/upstream-order.ts';
import type { ForwardUpstream } from './forward-upstream.ts';

/** Values of `policy`, which chooses the first upstream. */
export type ForwardPolicy = UpstreamOrder | 'latency';

/**
 * Under `latency`, one query in this many starts at a random upstream, so that one that used to be slow gets used
 * again.
 */
const EXPLORE = 20;

/**
 * Returns a function that orders the upstreams for a query. It may return the original list, which must not be
 * modified.
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
