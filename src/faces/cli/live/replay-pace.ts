/** Replays a file at the recorded speed or a multiple of it. */
import type { Clock, Timer } from '../../../server/base/clock.ts';

/** Bytes to read between time checks. This is only a few packets, so that the replay runs smoothly. */
const PIECE = 1024;
/** Bytes to read between time checks at full speed, where time jumps ahead. */
const FULL_PIECE = 16 * 1024;
/** Bytes to read between checks for key presses at full speed. */
const TURN_BYTES = 1024 * 1024;

/** Speeds that `+` and `-` step through. */
const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 5, 10, 25, 50, 100, 1000, Infinity];

export class ReplayPace {
  readonly #clock: Clock;
  #speed: number;
  #isPaused = false;
  #isStopped = false;
  /** Maps file time to clock time. Null if nothing has been read yet. */
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

  /** `as fast as recorded`, `10× as fast as recorded`, `at full speed`. */
  get phrase(): string {
    if (this.#speed === Infinity) return 'at full speed';
    return `${this.#speed === 1 ? '' : `${this.#speed}× `}as fast as recorded`;
  }

  /** The current file time, or null if reading lags behind or nothing has been read yet. */
  get reachedMs(): number | null {
    return this.#waiting === null || this.#anchor === null ? null : this.#reached();
  }

  pause(on: boolean): void {
    this.#settle();
    this.#isPaused = on;
    this.#wake();
  }

  change(faster: boolean): void {
    this.#settle();
    this.#speed = faster
      ? (SPEEDS.find((each) => each > this.#speed) ?? Infinity)
      : (SPEEDS.findLast((each) => each < this.#speed) ?? SPEEDS[0]!);
    this.#wake();
  }

  stop(): void {
    this.#isStopped = true;
    this.#wake();
  }

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

  #reached(): number {
    const { fileMs, nowMs } = this.#anchor!;
    if (this.#isPaused) return fileMs;
    return this.#speed === Infinity ? Infinity : fileMs + (this.#clock.now() - nowMs) * this.#speed;
  }

  /** Records the current position before the speed changes. */
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
 * Yields the same bytes in pieces, each when it is due.
 * @param read called after each piece; returns the latest packet's time
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
