/** Uses the whole terminal as a screen, and restores it at the end, also after a crash or a signal. */
import type { Clock } from '../../../server/base/clock.ts';
import { CellGrid } from './cell-grid.ts';
import { styleSequences, type ColourDepth } from './cell-style.ts';
import { KeyInput, type KeyPress } from './key-input.ts';
import { screenUpdate } from './screen-update.ts';

/** A terminal: the one of the process, or one in a test. */
export interface Terminal {
  readonly columns: number;
  readonly rows: number;
  /** Writes bytes unchanged. False: the terminal is slow, and frames should wait for `drained`. */
  write(text: string): boolean;
  /** Writes before it returns, for the end of the process. */
  writeNow(text: string): void;
  /** Reads keys as they are pressed, without echo; off: as it was before. */
  raw(on: boolean): void;
  /** Calls back from now on. There is one listener of each. */
  listen(listeners: {
    readonly input: (bytes: Uint8Array) => void;
    readonly resized: () => void;
    readonly drained: () => void;
    /** The process continues after a stop: the screen has other content now. */
    readonly resumed: () => void;
    /** Another program asks the process to stop, as Ctrl-Z does. */
    readonly suspended: () => void;
    /** The process ends without `leave`: nothing may wait. */
    readonly ending: () => void;
  }): void;
  /** Stops the process until the shell continues it (Ctrl-Z). */
  suspend(): void;
  close(): void;
}

/** Alternate screen, no cursor, no automatic line wrap, pasted text in brackets. */
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l\u001b[?2004h\u001b[0m\u001b[2J';
const LEAVE = '\u001b[0m\u001b[?2026l\u001b[?2004l\u001b[?7h\u001b[?25h\u001b[?1049l';

/** Smaller screens are drawn as if they had this size, and cut off. */
const LEAST = { columns: 10, rows: 3 };
/** Cells beyond are not drawn: a terminal that claims more is broken. */
const MOST = { columns: 1000, rows: 500 };

/** The screen of one program. */
export class FullScreen {
  readonly #terminal: Terminal;
  readonly #sequences: readonly string[];
  #shown: CellGrid | null = null;
  #spare: CellGrid | null = null;
  #entered = false;
  #isSlow = false;
  #waits = false;
  readonly #draw: (grid: CellGrid) => void;

  /**
   * @param parts `draw` fills a blank grid with the current frame; `key` takes the keys
   */
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

  /** Leaves, stops the process until the shell continues it, and enters again. */
  suspend(): void {
    this.leave();
    this.#terminal.suspend();
    this.enter();
  }

  /** Draws the current frame, unless the terminal has not accepted the last one yet. */
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

  /** Draws every cell: something else may have written to the terminal. */
  redraw(): void {
    this.#shown = null;
    this.draw();
  }

  /**
   * Asks the terminal to copy a text (OSC 52), which also works over SSH. Terminals may ignore it,
   * so the text has to be shown as well.
   */
  copy(text: string): void {
    const encoded = Buffer.from(text.slice(0, 8192), 'utf8').toString('base64');
    this.#terminal.write(`\u001b]52;c;${encoded}\u0007`);
  }
}

function within(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, Number.isFinite(value) ? Math.trunc(value) : least));
}
