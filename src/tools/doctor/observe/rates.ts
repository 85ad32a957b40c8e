/** One client’s queries to one server in each second, and their replies. */
import { isLost, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { BoundedMap } from './bounded-map.ts';

/** Seconds counted separately: ten minutes. */
const SECONDS_MAX = 600;

export interface Rate {
  asked: number;
  /** Replies that arrived in it. */
  replied: number;
  /** Of those asked in it. */
  lost: number;
}

/** Seconds since 1970 and the counts in each. */
export type RateHistory = readonly (readonly [second: number, Rate])[];

const noRate = (): Rate => ({ asked: 0, replied: 0, lost: 0 });

export class Rates {
  readonly #seconds: BoundedMap<number, Rate> = new BoundedMap(SECONDS_MAX);

  add(exchange: SeenExchange): void {
    const { sentMs, repliedMs } = exchange;
    const sent = this.#seconds.at(Math.floor(sentMs / 1000), noRate);
    if (sent !== null) {
      sent.asked++;
      if (isLost(exchange)) sent.lost++;
    }
    if (repliedMs === null) return;
    const arrived = this.#seconds.at(Math.floor(repliedMs / 1000), noRate);
    if (arrived !== null) arrived.replied++;
  }

  /** In order. */
  get history(): RateHistory {
    return this.#seconds.entries.toSorted(([one], [other]) => one - other);
  }
}
