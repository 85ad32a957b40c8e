/** Remembers which networks had queries refused recently, and how many. */
import type { Clock } from '../../base/clock.ts';

/** Refusals are remembered for one to two of these periods, in milliseconds. */
const PERIOD_MS = 5000;
/** Maximum number of remembered networks. */
const NETWORKS_MAX = 4096;
/**
 * Maximum number of refusals counted per network. Otherwise, a network with a thousand times as many queries would make
 * all others look modest.
 */
const COUNT_MAX = 1000;

/** A network is modest if the others had, on average, this many times as many queries refused. */
const MODEST = 4;

interface Period {
  readonly counts: Map<string, number>;
  total: number;
}

const period = (): Period => ({ counts: new Map(), total: 0 });

/** Refusals per network in the current and the previous period, stored in bounded memory. */
export class Refusals {
  readonly #clock: Clock;
  #end = 0;
  #now = period();
  #before = period();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get networks(): number {
    this.#turn();
    return Math.max(this.#now.counts.size, this.#before.counts.size);
  }

  add(network: string): void {
    this.#turn();
    const { counts } = this.#now;
    const count = counts.get(network) ?? 0;
    if (count >= COUNT_MAX || (count === 0 && counts.size >= NETWORKS_MAX)) return;
    counts.set(network, count + 1);
    this.#now.total++;
  }

  has(network: string): boolean {
    this.#turn();
    return this.#now.counts.has(network) || this.#before.counts.has(network);
  }

  isModest(network: string): boolean {
    const count = countIn(this.#now, network) + countIn(this.#before, network);
    return MODEST * count * this.networks < this.#now.total + this.#before.total;
  }

  #turn(): void {
    const now = this.#clock.now();
    if (now < this.#end) return;
    this.#before = now < this.#end + PERIOD_MS ? this.#now : period();
    this.#now = period();
    this.#end = now + PERIOD_MS;
  }
}

function countIn({ counts }: Period, network: string): number {
  return counts.get(network) ?? 0;
}
