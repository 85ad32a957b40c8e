/** The filter prompt at the bottom of the screen. */
import { Problem } from '../../../server/base/problem.ts';
import type { GivenFilter } from '../../../tools/capture/filter.ts';
import { parseFilterLine } from '../../../tools/capture/filter-line.ts';
import { liveFilterWords, whyUseless } from '../live-filters.ts';
import type { KeyPress } from '../screen/key-input.ts';

/** Maximum line length, characters. */
const LINE_MAX = 1000;
const HISTORY_MAX = 50;

export type PromptResult =
  | { readonly kind: 'open' }
  | { readonly kind: 'closed' }
  | { readonly kind: 'done'; readonly filters: readonly GivenFilter[] };

export class FilterPrompt {
  text: string;
  cursor: number;
  /** Why the line is invalid. Empty if it is valid. */
  mistake = '';
  readonly #history: string[];
  #at: number;
  readonly #hasOwners: boolean;

  /**
   * @param history earlier lines, oldest first, to which the new line is appended
   * @param hasOwners true if the pods behind addresses are known
   */
  constructor(text: string, history: string[], hasOwners: boolean) {
    this.text = text;
    this.cursor = text.length;
    this.#history = history;
    this.#at = history.length;
    this.#hasOwners = hasOwners;
  }

  key(key: KeyPress): PromptResult {
    if (key.name === 'escape' || (key.ctrl && key.name === 'c')) return { kind: 'closed' };
    if (key.name === 'enter') return this.#finish();
    this.#edit(key);
    this.#check();
    return { kind: 'open' };
  }

  #finish(): PromptResult {
    const filters = this.#check();
    if (filters === null) return { kind: 'open' };
    const line = this.text.trim();
    if (line !== '' && this.#history.at(-1) !== line) this.#history.push(line);
    if (this.#history.length > HISTORY_MAX) this.#history.shift();
    return { kind: 'done', filters };
  }

  #edit({ name, ctrl, text }: KeyPress): void {
    const { text: line, cursor } = this;
    if (name === 'left') this.cursor = Math.max(0, cursor - 1);
    else if (name === 'right') this.cursor = Math.min(line.length, cursor + 1);
    else if (name === 'home' || (ctrl && name === 'a')) this.cursor = 0;
    else if (name === 'end' || (ctrl && name === 'e')) this.cursor = line.length;
    else if (name === 'up') this.#recall(-1);
    else if (name === 'down') this.#recall(1);
    else if (name === 'tab') this.#complete();
    else if (name === 'backspace') this.#replace(cursor - 1, cursor, '');
    else if (name === 'delete') this.#replace(cursor, cursor + 1, '');
    else if (ctrl && name === 'u') this.#replace(0, cursor, '');
    else if (ctrl && name === 'w')
      this.#replace(line.slice(0, cursor).trimEnd().lastIndexOf(' ') + 1, cursor, '');
    else if (text !== '') this.#replace(cursor, cursor, text.replaceAll(/[\p{Cc}]+/gu, ' '));
  }

  #replace(from: number, to: number, text: string): void {
    if (from < 0) return;
    const room = LINE_MAX - this.text.length + (to - from);
    const added = text.slice(0, Math.max(0, room));
    this.text = `${this.text.slice(0, from)}${added}${this.text.slice(to)}`;
    this.cursor = from + added.length;
  }

  #recall(by: number): void {
    const at = Math.max(0, Math.min(this.#history.length, this.#at + by));
    if (at === this.#at) return;
    this.#at = at;
    this.text = this.#history[at] ?? '';
    this.cursor = this.text.length;
  }

  /** Completes the word before the cursor, up to the longest common prefix. */
  #complete(): void {
    const begun = this.#begun;
    const matches = begun === '' ? [] : liveFilterWords.filter((word) => word.startsWith(begun));
    const [first] = matches;
    if (first === undefined) return;
    let common = first.length;
    while (!matches.every((word) => word.startsWith(first.slice(0, common)))) common--;
    const text = matches.length === 1 ? `${first}=` : first.slice(0, common);
    this.#replace(this.cursor - begun.length, this.cursor, text);
  }

  /** The word before the cursor, without its negation. */
  get #begun(): string {
    const before = this.text.slice(0, this.cursor);
    return before.slice(before.lastIndexOf(' ') + 1).replace(/^(?:!|-{1,2})/, '');
  }

  /** Words that could follow, shown as a hint. */
  get offers(): readonly string[] {
    return liveFilterWords.filter((word) => word.startsWith(this.#begun));
  }

  #check(): readonly GivenFilter[] | null {
    this.mistake = '';
    try {
      const filters = parseFilterLine(this.text);
      const why = whyUseless(filters, this.#hasOwners);
      if (why === null) return filters;
      this.mistake = why;
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      this.mistake = error.message;
    }
    return null;
  }
}
