/** The order in which a directive's upstreams are tried. */
import type { Random } from '../../base/random.ts';

/** The values of `policy` in `forward` and `grpc`. */
export type UpstreamOrder = 'random' | 'round_robin' | 'sequential';

/** Returns a function that returns the order for a query. The result may be the list itself and must not be changed. */
export function upstreamOrder<T>(
  order: UpstreamOrder,
  random: Random,
): (upstreams: readonly T[]) => readonly T[] {
  let turn = 0;
  return (upstreams) => {
    if (upstreams.length < 2 || order === 'sequential') return upstreams;
    if (order === 'random') return shuffle([...upstreams], random);
    const first = turn++ % upstreams.length;
    return [...upstreams.slice(first), ...upstreams.slice(0, first)];
  };
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
