/**
 * The two paths of queries, by the second: a DNS pod has cluster names in memory, and forwards
 * external names to an upstream.
 */
import { BySecond } from './by-second.ts';
import { addOutcomes, countIn, noOutcomes, outcomeOf, type Outcomes } from './outcomes.ts';
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';

/** Seconds counted separately: two hours. */
const SECONDS_MAX = 7200;

export interface WayOutcomes {
  readonly inside: Outcomes;
  readonly outside: Outcomes;
}

/** Failures of some names are compared with other names on the same path at the same time. */
export class Ways {
  readonly #seconds = new BySecond(noWays, SECONDS_MAX);

  /** @param isOwn whether the name is of the cluster */
  add(exchange: SeenExchange, isOwn: boolean): void {
    const second = this.#seconds.at(exchange.sentMs);
    if (second !== null) countIn(isOwn ? second.inside : second.outside, outcomeOf(exchange));
  }

  /** Queries in the seconds of these two moments and between them, milliseconds since 1970. */
  between(fromMs: number, toMs: number): WayOutcomes {
    const sum = noWays();
    for (const [second, { inside, outside }] of this.#seconds.history) {
      if (second < Math.floor(fromMs / 1000) || second > Math.floor(toMs / 1000)) continue;
      addOutcomes(sum.inside, inside);
      addOutcomes(sum.outside, outside);
    }
    return sum;
  }
}

const noWays = (): WayOutcomes => ({ inside: noOutcomes(), outside: noOutcomes() });
