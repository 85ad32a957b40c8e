/** Replays a file as fast as it happened, or any number of times as fast. */
import type { Clock, Timer } from '../../../server/base/clock.ts';

/** Bytes that are read between checks of the time: few packets, so that a replay does not jump. */
const PIECE = 1024;
/** The same at full speed, with leaps in time. */
const FULL_PIECE = 16 * 1024;
/** At full speed keys are read after this number of bytes. */
const TURN_BYTES = 1024 * 1024;

/** The speeds that `+` and `-` go through. */
const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 5, 10, 25, 50, 100, 1000, Infinity];

/** Computes the point that a replay may have reached by now. */
export class ReplayPace {
  readonly #clock: Clock;
  #speed: number;
  #isPaused = false;
  #isStopped = false;
  /** The time of the file at a time of the clock; null: nothing has been read. */
  #anchor: { readonly fileMs: number; readonly nowMs: number } | null = null;
  #waiting: { readonly timer: Timer | null; readonly go: () => void } | null = null;

  constructor(clock: Clock, speed: number) {
    this.#clock = clock;
    this.#speed = speed;
  }

  get speed(): number {
    return this.#speed;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** `10×`, `0.5×`, `full speed`. */
  get text(): string {
    return this.#speed === Infinity ? 'full speed' : `${this.#speed}×`;
  }

  /** The time of the file by now; null: reading is behind it, or nothing has been read. */
  get reachedMs(): number | null {
    return this.#waiting === null || this.#anchor === null ? null : this.#reached();
  }

  /** Goes on, or waits. */
  pause(on: boolean): void {
    this.#settle();
    this.#isPaused = on;
    this.#wake();
  }

  /** The next higher or lower speed. */
  change(faster: boolean): void {
    this.#settle();
    this.#speed = faster
      ? (SPEEDS.find((each) => each > this.#speed) ?? Infinity)
      : (SPEEDS.findLast((each) => each < this.#speed) ?? SPEEDS[0]!);
    this.#wake();
  }

  /** Waits for nothing any more. */
  stop(): void {
    this.#isStopped = true;
    this.#wake();
  }

  /** Resolves once the replay may have reached this time of the file. */
  async reach(fileMs: number): Promise<void> {
    this.#anchor ??= { fileMs, nowMs: this.#clock.now() };
    while (!this.#isStopped) {
      const waitMs = (fileMs - this.#reached()) / this.#speed;
      if (!this.#isPaused && !(waitMs > 0)) return;
      await new Promise<void>((resolve) => {
        const go = (): void => {
          this.#waiting = null;
          resolve();
        };
        this.#waiting = { timer: this.#isPaused ? null : this.#clock.after(waitMs, go), go };
      });
    }
  }

  /** The time of the file by now. */
  #reached(): number {
    const { fileMs, nowMs } = this.#anchor!;
    if (this.#isPaused) return fileMs;
    return this.#speed === Infinity ? Infinity : fileMs + (this.#clock.now() - nowMs) * this.#speed;
  }

  /** Remembers how far it is, before the speed changes. */
  #settle(): void {
    if (this.#anchor === null) return;
    const reached = this.#reached();
    this.#anchor = reached === Infinity ? null : { fileMs: reached, nowMs: this.#clock.now() };
  }

  #wake(): void {
    this.#waiting?.timer?.cancel();
    this.#waiting?.go();
  }
}

/**
 * The same bytes, in pieces that come when it is their time.
 * @param read called after each piece; gives the time of the latest packet that was read
 */
export async function* pacedChunks(
  chunks: AsyncIterable<Uint8Array>,
  pace: ReplayPace,
  read: () => number,
): AsyncIterable<Uint8Array> {
  let sinceTurn = 0;
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length;) {
      const piece = chunk.subarray(at, at + (pace.speed === Infinity ? FULL_PIECE : PIECE));
      at += piece.length;
      yield piece;
      const readMs = read();
      if (Number.isFinite(readMs)) await pace.reach(readMs);
      sinceTurn += piece.length;
      if (sinceTurn < TURN_BYTES) continue;
      sinceTurn = 0;
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }
}
