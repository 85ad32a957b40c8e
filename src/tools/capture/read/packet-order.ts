/**
 * Packets put into the order of their times: those of several interfaces are written in turns, and
 * exchanges become known when they end.
 */
import { CopiedBytes } from '../pair/copied-bytes.ts';
import type { Frame } from './packets/frame.ts';

/**
 * Packets that are held at most, and their bytes; then the earlier half is let go, whatever comes.
 */
const HELD_MAX = 40_000;
const HELD_BYTES = 32 * 1024 * 1024;
/**
 * Packets of several interfaces are written so late at most, milliseconds: dumpcap takes turns of
 * tenths of a second.
 */
export const TURN_MS = 1000;
/**
 * Packets of one interface that was read by several processors go back by less than this; they are
 * left as they stand, milliseconds.
 */
const NEAR_MS = 10;
/** What goes back by more than this is another capture, milliseconds. */
export const BACK_MS = 5000;

/** Holds packets, or what else has a time, until nothing earlier can come. */
export class TimeOrder<T extends { readonly timeMs: number }> {
  readonly #give: (item: T) => void;
  readonly #windowMs: number;
  readonly #sizeOf: (item: T) => number;
  #held: T[] = [];
  #bytes = 0;
  #sortAt = 4000;
  #newestMs = -Infinity;
  /** When the first of what is held can be let go. */
  #dueMs = Infinity;

  /**
   * @param windowMs nothing is of a time so far before something that came earlier, milliseconds
   * @param sizeOf bytes that it takes while it is held
   */
  constructor(give: (item: T) => void, windowMs: number, sizeOf: (item: T) => number) {
    this.#give = give;
    this.#windowMs = windowMs;
    this.#sizeOf = sizeOf;
  }

  /** @param item stays as it is: nobody else writes into the bytes of a packet */
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

  /** Gives all that is left. */
  end(): void {
    this.#sort();
    this.#let(this.#held.length);
    this.#newestMs = -Infinity;
  }

  #release(full: boolean): void {
    this.#sort();
    const late = this.#held.findIndex(({ timeMs }) => timeMs > this.#newestMs - this.#windowMs);
    this.#let(full ? Math.max(late, this.#held.length >> 1) : late);
    // Sorting again pays when there is as much more.
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
 * Gives the packets of one capture in the order of their times. As long as there is one interface
 * and nothing has gone far back, each passes as it comes: to hold packets takes copies of them.
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

  /** @param interfaces how many the capture has described by now */
  take(frame: Frame, interfaces: number): void {
    const { timeMs } = frame;
    if (timeMs < this.#newestMs - BACK_MS) this.end();
    if (interfaces > 1 || timeMs < this.#newestMs - NEAR_MS) this.#isHolding = true;
    if (timeMs > this.#newestMs) this.#newestMs = timeMs;
    if (this.#isHolding) this.#order.add(ownFrame(frame, this.#copies));
    else this.#give(frame);
  }

  /** Nothing comes for a while: what is held is given. */
  pause(): void {
    this.#order.end();
    this.#newestMs = -Infinity;
  }

  /** No more will come, or what comes is another capture. */
  end(): void {
    this.pause();
    this.#isHolding = false;
  }
}

/** Bytes of a frame. */
export function frameBytes({ start, end }: Frame): number {
  return end - start;
}

/** A frame that stays when the reader goes on. */
export function ownFrame(frame: Frame, copies: CopiedBytes): Frame {
  const { number, timeMs, link, wireLength, port } = frame;
  const start = copies.add(frame.bytes, frame.start, frame.end);
  const end = start + frame.end - frame.start;
  return { number, timeMs, link, bytes: copies.slab, start, end, wireLength, port };
}
