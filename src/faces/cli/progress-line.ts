/**
 * The last line of a terminal, on which a verb says how far it is: written over, and gone when
 * something else is printed.
 */
import { oneLine } from '../../server/base/visible.ts';

/** Work that is done sooner needs no word, milliseconds. */
const QUIET_MS = 1000;
/** The least time between two updates, in milliseconds. */
const EVERY_MS = 200;

/** Return to the first column and clear the line (ECMA-48, EL). */
const AFRESH = '\r\u001b[K';

/** One terminal's line. */
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

  /** Shows the text, unless the last one was shown a moment ago. */
  tell(text: () => string): void {
    const nowMs = this.#nowMs();
    if (nowMs < this.#nextMs) return;
    this.#nextMs = nowMs + EVERY_MS;
    this.#shown = true;
    this.#write(`${AFRESH}${oneLine(text()).slice(0, this.#columns() - 1)}`);
  }

  /** Takes the line away: something else is to be printed. */
  clear(): void {
    if (!this.#shown) return;
    this.#shown = false;
    this.#write(AFRESH);
  }
}
