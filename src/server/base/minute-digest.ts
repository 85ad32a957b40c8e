/** Log lines about events that may be frequent. */
import type { Clock, Timer } from './clock.ts';

const MINUTE_MS = 60_000;

/** Prints the first event at once, and after that only a count once a minute, so that a flood cannot fill the log. */
export class MinuteDigest {
  readonly #clock: Clock;
  readonly #print: (count: number, example: string) => void;
  #timer: Timer | null = null;
  #count = 0;
  #example = '';

  constructor(clock: Clock, print: (count: number, example: string) => void) {
    this.#clock = clock;
    this.#print = print;
  }

  note(example = ''): void {
    this.#count++;
    this.#example = example;
    if (this.#timer === null) this.#tell();
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #tell(): void {
    this.#print(this.#count, this.#example);
    this.#count = 0;
    this.#timer = this.#clock.after(MINUTE_MS, () => {
      this.#timer = null;
      if (this.#count > 0) this.#tell();
    });
  }
}
