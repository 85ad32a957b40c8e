/**
 * Orders packets by time, because those from several interfaces are written alternately and exchanges are reported when
 * they end.
 */
import { CopiedBytes } from '../pair/copied-bytes.ts';
import type { Frame } from './packets/frame.ts';

/** Limits on the packets held and on their bytes. When either is reached, the earlier half is released. */
const HELD_MAX = 40_000;
const HELD_BYTES = 32 * 1024 * 1024;
/**
 * In milliseconds. The longest delay in writing packets from several interfaces, between which dumpcap switches every
 * few tenths of a second.
 */
export const TURN_MS = 1000;
/**
 * In milliseconds. If several CPUs read packets from one interface, the packets differ by less than this and are not
 * reordered.
 */
const NEAR_MS = 10;
/** In milliseconds. A packet that is earlier by more than this starts another capture. */
export const BACK_MS = 5000;

/** Holds items until nothing earlier can arrive. */
export class TimeOrder<T extends { readonly timeMs: number }> {
  readonly #give: (item: T) => void;
  readonly #windowMs: number;
  readonly #sizeOf: (item: T) => number;
  #held: T[] = [];
  #bytes = 0;
  #sortAt = 4000;
  #newestMs = -Infinity;
  /** The time at which the first held item may be released. */
  #dueMs = Infinity;

  /**
   * @param windowMs how many milliseconds an item may be earlier than one before it
   * @param sizeOf how many bytes an item takes up while held
   */
  constructor(give: (item: T) => void, windowMs: number, sizeOf: (item: T) => number) {
    this.#give = give;
    this.#windowMs = windowMs;
    this.#sizeOf = sizeOf;
  }

  /** @param item must not change later, so a packet's bytes must not be reused */
  add(item: T): void {
    const { timeMs } = item;
    if (this.#held.length === 0) this.#dueMs = timeMs + 2 * this.#windowMs;
    this.#held.push(item);
    this.#bytes += this.#sizeOf(item);
    if (timeMs > this.#newestMs) this.#newestMs = timeMs;
    const full = this.#bytes > HELD_BYTES || this.#held.length >= HELD_MAX;
    if (full || this.#held.length >= this.#sortAt || this.#newestMs > this.#dueMs)
      this.#release(full);
  }

  end(): void {
    this.#sort();
    this.#let(this.#held.length);
    this.#newestMs = -Infinity;
  }

  #release(full: boolean): void {
    this.#sort();
    const late = this.#held.findIndex(({ timeMs }) => timeMs > this.#newestMs - this.#windowMs);
    this.#let(full ? Math.max(late, this.#held.length >> 1) : late);
    // Sorting again pays off once the list has grown by this much.
    this.#sortAt = Math.min(HELD_MAX, this.#held.length + 4000);
    this.#dueMs = this.#newestMs + this.#windowMs;
  }

  #sort(): void {
    this.#held.sort((one, other) => one.timeMs - other.timeMs);
  }

  #let(count: number): void {
    for (const item of this.#held.splice(0, count)) {
      this.#bytes -= this.#sizeOf(item);
      this.#give(item);
    }
  }
}

/**
 * Orders a capture's packets by time. Held packets have to be copied, so if there is one interface and nothing is far
 * out of order, packets pass immediately.
 */
export class CaptureOrder {
  readonly #give: (frame: Frame) => void;
  readonly #order: TimeOrder<Frame>;
  readonly #copies = new CopiedBytes();
  #newestMs = -Infinity;
  #isHolding = false;

  constructor(give: (frame: Frame) => void) {
    this.#give = give;
    this.#order = new TimeOrder(give, TURN_MS, frameBytes);
  }

  /** @param interfaces how many interfaces have been described so far */
  take(frame: Frame, interfaces: number): void {
    const { timeMs } = frame;
    if (timeMs < this.#newestMs - BACK_MS) this.end();
    if (interfaces > 1 || timeMs < this.#newestMs - NEAR_MS) this.#isHolding = true;
    if (timeMs > this.#newestMs) this.#newestMs = timeMs;
    if (this.#isHolding) this.#order.add(ownFrame(frame, this.#copies));
    else this.#give(frame);
  }

  /** Releases held packets when the input is silent. */
  pause(): void {
    this.#order.end();
    this.#newestMs = -Infinity;
  }

  /** Called when the input has ended or another capture follows. */
  end(): void {
    this.pause();
    this.#isHolding = false;
  }
}

export function frameBytes({ start, end }: Frame): number {
  return end - start;
}

/** Copies a frame so that it remains valid when the reader continues. */
export function ownFrame(frame: Frame, copies: CopiedBytes): Frame {
  const { number, timeMs, link, wireLength, port } = frame;
  const start = copies.add(frame.bytes, frame.start, frame.end);
  const end = start + frame.end - frame.start;
  return { number, timeMs, link, bytes: copies.slab, start, end, wireLength, port };
}
