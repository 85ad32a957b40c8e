/** A progress line at the bottom of a terminal, cleared before anything else is printed. */
import { oneLine } from '../../server/base/visible.ts';

/** Shorter operations show no progress, milliseconds. */
const QUIET_MS = 1000;
/** Minimum time between updates, milliseconds. */
const EVERY_MS = 200;

/** Moves to the first column and clears the line (ECMA-48, EL). */
const AFRESH = '\r\u001b[K';

export class ProgressLine {
  readonly #write: (text: string) => void;
  readonly #columns: () => number;
  readonly #nowMs: () => number;
  #nextMs: number;
  #shown = false;

  /** @param terminal `nowMs`: any monotonic clock */
  constructor(terminal: {
    readonly write: (text: string) => void;
    readonly columns: () => number;
    readonly nowMs: () => number;
  }) {
    this.#write = terminal.write;
    this.#columns = terminal.columns;
    this.#nowMs = terminal.nowMs;
    this.#nextMs = terminal.nowMs() + QUIET_MS;
  }

  /** Shows the text unless the last update was too recent. */
  tell(text: () => string): void {
    const nowMs = this.#nowMs();
    if (nowMs < this.#nextMs) return;
    this.#nextMs = nowMs + EVERY_MS;
    this.#shown = true;
    this.#write(`${AFRESH}${oneLine(text()).slice(0, this.#columns() - 1)}`);
  }

  /** Clears the line before other output. */
  clear(): void {
    if (!this.#shown) return;
    this.#shown = false;
    this.#write(AFRESH);
  }
}
