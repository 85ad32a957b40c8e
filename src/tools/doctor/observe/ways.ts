/**
 * The two ways that queries go: names of the cluster a DNS pod has in memory, names of outside go
 * on to an upstream. By the second.
 */
import { BoundedMap } from './bounded-map.ts';
import { addOutcomes, countIn, noOutcomes, outcomeOf, type Outcomes } from './outcomes.ts';
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';

/** Seconds that are looked at one by one: two hours. */
const SECONDS_MAX = 7200;

/** What became of queries of either way. */
export interface WayOutcomes {
  readonly inside: Outcomes;
  readonly outside: Outcomes;
}

/**
 * What goes wrong with some names is compared with others that go the same way at the same time.
 */
export class Ways {
  readonly #seconds: BoundedMap<number, WayOutcomes> = new BoundedMap(SECONDS_MAX);

  /** @param isOwn whether the name is of the cluster */
  add(exchange: SeenExchange, isOwn: boolean): void {
    const second = this.#seconds.at(Math.floor(exchange.sentMs / 1000), noWays);
    if (second !== null) countIn(isOwn ? second.inside : second.outside, outcomeOf(exchange));
  }

  /**
   * What was asked in the seconds of these two moments and between them, milliseconds since 1970.
   */
  between(fromMs: number, toMs: number): WayOutcomes {
    const sum = noWays();
    for (const [second, { inside, outside }] of this.#seconds.entries) {
      if (second < Math.floor(fromMs / 1000) || second > Math.floor(toMs / 1000)) continue;
      addOutcomes(sum.inside, inside);
      addOutcomes(sum.outside, outside);
    }
    return sum;
  }
}

const noWays = (): WayOutcomes => ({ inside: noOutcomes(), outside: noOutcomes() });
