/** Names shared by random Corefiles, zones, upstreams and queries, so that they interact. */
import type { Random } from '../../../src/server/base/random.ts';

/** Zones for server blocks and plugins. */
export const zones: readonly string[] = [
  'example.org.',
  'sub.example.org.',
  'example.net.',
  'test.',
];

/** First labels. The upstream's reaction to each is defined in upstream.ts. */
export const labels: readonly string[] = [
  ...['a', 'b', 'c', 'www', 'mail', 'deep', 'x-y', '_http', '_tcp', 'star', 'UP'],
  ...['nx', 'nodata', 'cname', 'big', 'echo', 'v4', 'v6', 'servfail', 'refused', 'ttl0', 'short'],
  ...['extra', 'signed', 'nxbare', 'referral', 'ad', 'aa', 'huge', 'loop', 'dname', 'opt'],
];

export interface Draw {
  one<T>(list: readonly T[]): T;
  /** True once in `times` on average. */
  rarely(times: number): boolean;
  /** Both bounds are inclusive. */
  between(from: number, to: number): number;
  /** Picks some items from a list and keeps their order. */
  some<T>(list: readonly T[], most: number): readonly T[];
}

export function drawFrom(random: Random): Draw {
  const one = <T>(list: readonly T[]): T => list[random.integer(list.length)]!;
  const between = (from: number, to: number): number => from + random.integer(to - from + 1);
  return {
    one,
    between,
    rarely: (times) => random.integer(times) === 0,
    some: (list, most) => {
      const wanted = Math.min(list.length, between(1, most));
      const left = [...list];
      while (left.length > wanted) left.splice(random.integer(left.length), 1);
      return left;
    },
  };
}

/** Picks one of the common names, absolute. */
export function drawName(draw: Draw, deepest = 2): string {
  const parts = Array.from({ length: draw.between(0, deepest) }, () => draw.one(labels));
  return [...parts, draw.one(zones)].join('.');
}
