/** A terminal for tests. Output is sent to xterm's own emulator, and its screen is read as text. */
import xterm from '@xterm/headless';
import type { Terminal } from '../../src/faces/cli/screen/full-screen.ts';

/** The rows and columns of characters that a user would see. */
export class EmulatedTerminal implements Terminal {
  readonly #emulator: InstanceType<typeof xterm.Terminal>;
  #listeners: Parameters<Terminal['listen']>[0] | null = null;
  /** The output written since `takeWritten`. */
  #written = '';
  isRaw = false;
  isClosed = false;
  suspensions = 0;
  /** False if the terminal is blocked, in which case frames wait for `drain`. */
  takes = true;

  constructor(columns: number, rows: number) {
    this.#emulator = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true });
  }

  get columns(): number {
    return this.#emulator.cols;
  }

  get rows(): number {
    return this.#emulator.rows;
  }

  write(text: string): boolean {
    this.#written += text;
    this.#emulator.write(text);
    return this.takes;
  }

  writeNow(text: string): void {
    this.write(text);
  }

  raw(on: boolean): void {
    this.isRaw = on;
  }

  listen(listeners: Parameters<Terminal['listen']>[0]): void {
    this.#listeners = listeners;
  }

  suspend(): void {
    this.suspensions++;
  }

  close(): void {
    this.isClosed = true;
  }

  /** Presses keys, given as the bytes that a terminal would send. */
  press(bytes: string): void {
    this.#listeners!.input(Buffer.from(bytes, 'utf8'));
  }

  resize(columns: number, rows: number): void {
    this.#emulator.resize(columns, rows);
    this.#listeners!.resized();
  }

  drain(): void {
    this.takes = true;
    this.#listeners!.drained();
  }

  /** The process's signals and resizes. */
  get events(): Parameters<Terminal['listen']>[0] {
    return this.#listeners!;
  }

  takeWritten(): string {
    const written = this.#written;
    this.#written = '';
    return written;
  }

  /** The screen's rows, without trailing blanks. */
  async screen(): Promise<readonly string[]> {
    await new Promise<void>((resolve) => this.#emulator.write('', resolve));
    const { active } = this.#emulator.buffer;
    return Array.from(
      { length: this.rows },
      (_, row) =>
        active
          .getLine(active.viewportY + row)
          ?.translateToString(true)
          .trimEnd() ?? '',
    );
  }

  async text(): Promise<string> {
    return (await this.screen()).join('\n');
  }

  /** True if the alternate screen is shown, which leaves the original contents untouched. */
  async isAlternate(): Promise<boolean> {
    await new Promise<void>((resolve) => this.#emulator.write('', resolve));
    return this.#emulator.buffer.active.type === 'alternate';
  }

  async cell(
    column: number,
    row: number,
  ): Promise<{ characters: string; foreground: number; inverse: boolean; bold: boolean }> {
    await new Promise<void>((resolve) => this.#emulator.write('', resolve));
    const { active } = this.#emulator.buffer;
    const cell = active.getLine(active.viewportY + row)!.getCell(column)!;
    return {
      characters: cell.getChars(),
      foreground: cell.isFgDefault() ? -1 : cell.getFgColor(),
      inverse: cell.isInverse() !== 0,
      bold: cell.isBold() !== 0,
    };
  }
}
