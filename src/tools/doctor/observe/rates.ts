/** One client’s queries to one server in each second, and their replies. */
import { isLost, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { BySecond, type History } from './by-second.ts';

/** Seconds counted separately: ten minutes. */
const SECONDS_MAX = 600;

export interface Rate {
  asked: number;
  /** Replies that arrived in it. */
  replied: number;
  /** Of those asked in it. */
  lost: number;
}

export type RateHistory = History<Rate>;

const noRate = (): Rate => ({ asked: 0, replied: 0, lost: 0 });

export class Rates {
  readonly #seconds = new BySecond(noRate, SECONDS_MAX);

  add(exchange: SeenExchange): void {
    const { sentMs, repliedMs } = exchange;
    const sent = this.#seconds.at(sentMs);
    if (sent !== null) {
      sent.asked++;
      if (isLost(exchange)) sent.lost++;
    }
    if (repliedMs === null) return;
    const arrived = this.#seconds.at(repliedMs);
    if (arrived !== null) arrived.replied++;
  }

  get history(): RateHistory {
    return this.#seconds.history;
  }
}
