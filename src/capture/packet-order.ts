/** Packets of exchanges put into the order of their times: exchanges become known when they end, which may be long after they began. */
import type { SeenExchange } from './exchanges/seen-exchange.ts';
import type { Frame } from './packets/frame.ts';
import { packetsOf } from './written-packet.ts';

/** No exchange ends later than this after it began, milliseconds. */
const LATEST_MS = 16_000;
/** Packets that are held at most; then the earlier half is let go, whatever comes. */
const HELD_MAX = 40_000;

/** Holds packets until nothing earlier can come. */
export class PacketOrder {
  readonly #give: (frame: Frame) => void;
  #held: Frame[] = [];
  #sortAt = 4000;

  constructor(give: (frame: Frame) => void) {
    this.#give = give;
  }

  add(exchange: SeenExchange): void {
    for (const frame of packetsOf(exchange)) this.#held.push(frame);
    if (this.#held.length < this.#sortAt) return;
    this.#sort();
    const newest = this.#held.at(-1)!.timeMs;
    const late = this.#held.findIndex(({ timeMs }) => timeMs > newest - LATEST_MS);
    this.#release(this.#held.length >= HELD_MAX ? Math.max(late, HELD_MAX / 2) : late);
    // Sorting again pays when there is as much more.
    this.#sortAt = Math.min(HELD_MAX, this.#held.length + 4000);
  }

  /** Gives all that is left. */
  end(): void {
    this.#sort();
    this.#release(this.#held.length);
  }

  #sort(): void {
    this.#held.sort((one, other) => one.timeMs - other.timeMs);
  }

  #release(count: number): void {
    for (const frame of this.#held.splice(0, count)) this.#give(frame);
  }
}
