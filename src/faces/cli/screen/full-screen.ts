/** Takes over the whole terminal and restores it at the end, even after a crash or a signal. */
import type { Clock } from '../../../server/base/clock.ts';
import { CellGrid } from './cell-grid.ts';
import { styleSequences, type ColourDepth } from './cell-style.ts';
import { KeyInput, type KeyPress } from './key-input.ts';
import { screenUpdate } from './screen-update.ts';

/** A terminal, either real or emulated in a test. */
export interface Terminal {
  readonly columns: number;
  readonly rows: number;
  /** Writes data unchanged. Returns false if the terminal is slow, in which case frames should wait for `drained`. */
  write(text: string): boolean;
  /** Writes synchronously, for use at process exit. */
  writeNow(text: string): void;
  /** Turns raw mode on or off. In raw mode, keys are read as they are pressed and are not echoed. */
  raw(on: boolean): void;
  /** Sets the listeners, one of each kind. */
  listen(listeners: {
    readonly input: (bytes: Uint8Array) => void;
    readonly resized: () => void;
    readonly drained: () => void;
    /** The process was continued after a stop, so the screen may show something else. */
    readonly resumed: () => void;
    /** Another program asked the process to stop, as Ctrl-Z would. */
    readonly suspended: () => void;
    /** The process is exiting without `leave`. The listener must be synchronous. */
    readonly ending: () => void;
  }): void;
  /** Stops the process until the shell continues it (Ctrl-Z). */
  suspend(): void;
  close(): void;
}

/** Alternate screen, hidden cursor, no line wrap, and bracketed paste. */
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l\u001b[?2004h\u001b[0m\u001b[2J';
const LEAVE = '\u001b[0m\u001b[?2026l\u001b[?2004l\u001b[?7h\u001b[?25h\u001b[?1049l';

/** On smaller screens, everything is drawn at this size and then cut off. */
const LEAST = { columns: 10, rows: 3 };
/** Cells beyond this are not drawn, because a terminal that reports more is broken. */
const MOST = { columns: 1000, rows: 500 };

export class FullScreen {
  readonly #terminal: Terminal;
  readonly #sequences: readonly string[];
  #shown: CellGrid | null = null;
  #spare: CellGrid | null = null;
  #entered = false;
  #isSlow = false;
  #waits = false;
  readonly #draw: (grid: CellGrid) => void;

  /** @param parts `draw` fills a blank grid with the current frame, and `key` receives key presses */
  constructor(
    terminal: Terminal,
    depth: ColourDepth,
    parts: {
      readonly draw: (grid: CellGrid) => void;
      readonly key: (key: KeyPress) => void;
      readonly clock: Clock;
    },
  ) {
    this.#terminal = terminal;
    this.#sequences = styleSequences(depth);
    this.#draw = parts.draw;
    const keys = new KeyInput(parts.key, parts.clock);
    terminal.listen({
      input: (bytes) => {
        if (this.#entered) keys.push(bytes);
      },
      resized: () => this.redraw(),
      drained: () => {
        this.#isSlow = false;
        if (this.#waits) this.draw();
      },
      resumed: () => {
        if (!this.#entered) return;
        this.#entered = false;
        this.enter();
      },
      suspended: () => this.suspend(),
      ending: () => this.leave(),
    });
  }

  enter(): void {
    if (this.#entered) return;
    this.#entered = true;
    this.#terminal.raw(true);
    this.#terminal.write(ENTER);
    this.redraw();
  }

  /** Restores the terminal. */
  leave(): void {
    if (!this.#entered) return;
    this.#entered = false;
    this.#terminal.writeNow(LEAVE);
    this.#terminal.raw(false);
  }

  /** Leaves the screen, stops the process until the shell continues it, and then comes back. */
  suspend(): void {
    this.leave();
    this.#terminal.suspend();
    this.enter();
  }

  /** Draws the current frame, unless the terminal is still busy with the last one. */
  draw(): void {
    if (!this.#entered) return;
    this.#waits = this.#isSlow;
    if (this.#isSlow) return;
    const columns = within(this.#terminal.columns, LEAST.columns, MOST.columns);
    const rows = within(this.#terminal.rows, LEAST.rows, MOST.rows);
    const isFresh = this.#shown?.columns !== columns || this.#shown.rows !== rows;
    const next =
      this.#spare?.columns === columns && this.#spare.rows === rows
        ? this.#spare
        : new CellGrid(columns, rows);
    next.clear();
    this.#draw(next);
    const update = screenUpdate(isFresh ? null : this.#shown, next, this.#sequences);
    this.#spare = this.#shown;
    this.#shown = next;
    if (update !== '') this.#isSlow = !this.#terminal.write(update);
  }

  /** Redraws every cell, because something else may have written to the terminal. */
  redraw(): void {
    this.#shown = null;
    this.draw();
  }

  /**
   * Copies text to the clipboard through the terminal (OSC 52), which even works over SSH. Since terminals may ignore
   * this, show the text as well.
   */
  copy(text: string): void {
    const encoded = Buffer.from(text.slice(0, 8192), 'utf8').toString('base64');
    this.#terminal.write(`\u001b]52;c;${encoded}\u0007`);
  }
}

function within(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, Number.isFinite(value) ? Math.trunc(value) : least));
}
