/** Pairs of A and AAAA queries that leave together, and which of the two is lost. */
import { isAddressType } from '../../../server/wire/iana.ts';
import { isCut } from '../../capture/pair/message-head.ts';
import { isLost, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { TOGETHER_MS } from '../thresholds/transport.ts';

const HALVES_MAX = 5000;

export interface PairCounts {
  asked: number;
  oneLost: number;
  /** The number of these that lost the second query. */
  secondLost: number;
  bothLost: number;
}

export class QueryPairs {
  /** Pairs sent from one port. */
  readonly one: PairCounts = noPairs();
  /** Pairs sent from two ports. */
  readonly two: PairCounts = noPairs();
  /** The lost queries of pairs from one port that lost only one. */
  readonly halves: SeenExchange[] = [];
  readonly #keep: (exchange: SeenExchange) => void;

  /** @param keep copies an exchange's bytes, so that it can be stored */
  constructor(keep: (exchange: SeenExchange) => void) {
    this.#keep = keep;
  }

  add(exchanges: readonly SeenExchange[]): void {
    for (let at = 1; at < exchanges.length; at++) {
      const [one, other] = [exchanges[at - 1]!, exchanges[at]!];
      if (!isPair(one, other)) continue;
      const samePort = one.client.port === other.client.port;
      const counts = samePort ? this.one : this.two;
      counts.asked++;
      const [first, second] = [isLost(one), isLost(other)];
      if (first && second) counts.bothLost++;
      else if (first || second) {
        counts.oneLost++;
        if (second) counts.secondLost++;
        if (samePort) this.#add(second ? other : one);
      }
      at++;
    }
  }

  #add(half: SeenExchange): void {
    if (this.halves.length >= HALVES_MAX) return;
    this.#keep(half);
    this.halves.push(half);
  }
}

function isPair(one: SeenExchange, other: SeenExchange): boolean {
  if (one.name !== other.name || one.attempt + other.attempt > 2) return false;
  const areBoth = one.type !== other.type && isAddressType(one.type) && isAddressType(other.type);
  if (!areBoth && !(isCut(one.name) && one.id !== other.id)) return false;
  if (other.sentMs - one.sentMs > TOGETHER_MS || one.protocol !== 'udp') return false;
  if (one.ending === 'open' || other.ending === 'open') return false;
  return one.server.address === other.server.address;
}

const noPairs = (): PairCounts => ({ asked: 0, oneLost: 0, secondLost: 0, bothLost: 0 });
