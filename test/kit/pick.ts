import type { Random } from '../../src/server/base/random.ts';

/** Draws an item of a list. */
export function pick<T>(random: Random, of: readonly T[]): T {
  return of[random.integer(of.length)]!;
}
