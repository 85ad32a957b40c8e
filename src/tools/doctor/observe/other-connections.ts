/**
 * Connections that have nothing to do with DNS: whether what hits queries hits them, too, and at
 * the same time.
 */
import { BySecond } from './by-second.ts';
import { COPY_MS } from '../thresholds/transport.ts';

/** Connections whose first packet is remembered. */
const OPENING_MAX = 20_000;
/** Seconds counted separately: two hours. */
const SECONDS_MAX = 7200;

/**
 * Connections that were opened, and of these the ones whose first packet had to be repeated because
 * nothing came.
 */
export interface Openings {
  opened: number;
  repeated: number;
}

/** Counts them, by the second in which they were opened. */
export class OtherConnections implements Openings {
  opened: number = 0;
  repeated: number = 0;
  readonly #seconds = new BySecond(noOpenings, SECONDS_MAX);
  readonly #opening = new Map<string, { readonly ms: number; settled: boolean }>();

  /** A first packet. @param key both ends */
  opening(key: string, timeMs: number): void {
    const known = this.#opening.get(key);
    if (known === undefined) {
      this.opened++;
      const second = this.#seconds.at(timeMs);
      if (second !== null) second.opened++;
      if (this.#opening.size >= OPENING_MAX) this.#opening.clear();
      this.#opening.set(key, { ms: timeMs, settled: false });
    } else if (!known.settled && timeMs > known.ms + COPY_MS) {
      // Counted once, however often it is tried.
      this.repeated++;
      const second = this.#seconds.at(known.ms);
      if (second !== null) second.repeated++;
      known.settled = true;
    }
  }

  /** It was answered. @param key both ends, as they were when it was opened */
  answered(key: string): void {
    const known = this.#opening.get(key);
    if (known !== undefined) known.settled = true;
  }

  /** Those that were opened in these seconds, the last one included. */
  between(fromS: number, toS: number): Openings {
    const sum = noOpenings();
    for (const [second, { opened, repeated }] of this.#seconds.history)
      if (second >= fromS && second <= toS) {
        sum.opened += opened;
        sum.repeated += repeated;
      }
    return sum;
  }
}

const noOpenings = (): Openings => ({ opened: 0, repeated: 0 });
