/** Decodes terminal input into keys, including escape sequences, control characters and pasted text. */
import type { Clock, Timer } from '../../../server/base/clock.ts';

export interface KeyPress {
  /** The typed character, or a name such as `up`, `enter`, `f1` or `paste`. */
  readonly name: string;
  readonly ctrl: boolean;
  readonly alt: boolean;
  readonly shift: boolean;
  /** Characters to insert into an input line. Empty for command keys. */
  readonly text: string;
}

/**
 * After this many milliseconds, a lone escape character counts as the Esc key. Except over slow links, the rest of a
 * sequence arrives in the same packet.
 */
const ESCAPE_MS = 50;
/** Maximum length for a sequence to be recognized. Longer ones are skipped. */
const SEQUENCE_MAX = 32;
/** Maximum number of stored characters of pasted text. */
const PASTE_MAX = 4096;

const PASTE_END = '\u001b[201~';

/** Keys by the final letter in `CSI … letter` or `SS3 letter` (xterm, VT220). */
const byLetter: Readonly<Record<string, string>> = {
  A: 'up',
  B: 'down',
  C: 'right',
  D: 'left',
  E: 'begin',
  F: 'end',
  H: 'home',
  M: 'enter',
  P: 'f1',
  Q: 'f2',
  R: 'f3',
  S: 'f4',
  Z: 'tab',
};

/** Keys by the first number of `CSI number ~`. */
const byNumber: Readonly<Record<string, string>> = {
  1: 'home',
  2: 'insert',
  3: 'delete',
  4: 'end',
  5: 'pageup',
  6: 'pagedown',
  7: 'home',
  8: 'end',
  11: 'f1',
  12: 'f2',
  13: 'f3',
  14: 'f4',
  15: 'f5',
};

const controls: Readonly<Record<string, string>> = {
  '\r': 'enter',
  '\n': 'enter',
  '\t': 'tab',
  '\b': 'backspace',
  '\u007f': 'backspace',
};

/** Decodes keys, however the input is split into chunks. */
export class KeyInput {
  readonly #take: (key: KeyPress) => void;
  readonly #clock: Clock;
  readonly #decoder = new TextDecoder();
  #pending = '';
  /** Text of an incomplete paste, or null if there is none. */
  #pasted: string | null = null;
  /** True inside a string (OSC, DCS or APC) that the terminal sends about itself. These are skipped. */
  #inString = false;
  #timer: Timer | null = null;

  constructor(take: (key: KeyPress) => void, clock: Clock) {
    this.#take = take;
    this.#clock = clock;
  }

  push(bytes: Uint8Array): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#pending += this.#decoder.decode(bytes, { stream: true });
    while (this.#pending !== '' && this.#next());
    if (this.#pending !== '' && this.#pasted === null && !this.#inString)
      this.#timer = this.#clock.after(ESCAPE_MS, () => this.#giveUp());
  }

  /** @returns true if some of the pending text was consumed */
  #next(): boolean {
    if (this.#pasted !== null) return this.#paste();
    if (this.#inString) return this.#skipString();
    const text = this.#pending;
    if (!text.startsWith('\u001b')) {
      const character = String.fromCodePoint(text.codePointAt(0)!);
      this.#pending = text.slice(character.length);
      this.#character(character, false);
      return true;
    }
    if (text.length === 1) return false;
    const second = text[1]!;
    if (second === '[') return this.#sequence();
    if (second === 'O') {
      if (text.length < 3) return false;
      this.#pending = text.slice(3);
      const name = byLetter[text[2]!];
      if (name !== undefined) this.#give(name, 1);
      return true;
    }
    if (second === ']' || second === 'P' || second === '_' || second === '^' || second === 'X') {
      this.#inString = true;
      this.#pending = text.slice(2);
      return true;
    }
    if (second === '\u001b') {
      this.#pending = text.slice(1);
      this.#give('escape', 1);
      return true;
    }
    const character = String.fromCodePoint(text.codePointAt(1)!);
    this.#pending = text.slice(1 + character.length);
    this.#character(character, true);
    return true;
  }

  #sequence(): boolean {
    const text = this.#pending;
    // Parameters and intermediates, then a single final character (ECMA-48, section 5.4).
    let end = 2;
    while (end < text.length && text[end]! >= ' ' && text[end]! <= '?') end++;
    if (end >= text.length) {
      if (end > SEQUENCE_MAX) this.#pending = '\u001b[';
      return false;
    }
    this.#pending = text.slice(end + 1);
    const parameters = text.slice(2, end).split(';');
    const last = text[end]!;
    if (last === '~' && parameters[0] === '200') {
      this.#pasted = '';
      return true;
    }
    const name = last === '~' ? byNumber[parameters[0]!] : byLetter[last];
    if (name !== undefined) this.#give(name, last === 'Z' ? 2 : Number(parameters[1] ?? 1) || 1);
    return true;
  }

  #paste(): boolean {
    const end = this.#pending.indexOf(PASTE_END);
    // The end marker may be split, so hold on to a possible prefix.
    const until = end < 0 ? Math.max(0, this.#pending.length - PASTE_END.length + 1) : end;
    const room = PASTE_MAX - this.#pasted!.length;
    this.#pasted += this.#pending.slice(0, Math.min(until, room));
    this.#pending = this.#pending.slice(until);
    if (end < 0) return false;
    const text = this.#pasted!;
    this.#pasted = null;
    this.#pending = this.#pending.slice(PASTE_END.length);
    this.#take({ name: 'paste', ctrl: false, alt: false, shift: false, text });
    return true;
  }

  /** Strings end with BEL or with ESC and a backslash. */
  #skipString(): boolean {
    // eslint-disable-next-line no-control-regex -- matches terminal input
    const end = /\u0007|\u001b\\/.exec(this.#pending);
    this.#inString = end === null;
    // A trailing ESC may be half of the terminator.
    const half = this.#pending.endsWith('\u001b') ? '\u001b' : '';
    this.#pending = end === null ? half : this.#pending.slice(end.index + end[0].length);
    return end !== null;
  }

  #character(character: string, alt: boolean): void {
    const name = controls[character];
    const code = character.codePointAt(0)!;
    const key = { ctrl: false, alt, shift: false, text: '' };
    if (name !== undefined) this.#take({ ...key, name });
    else if (code < 32) {
      const letter = String.fromCharCode(code + 96);
      this.#take({ ...key, name: letter, ctrl: true });
    } else this.#take({ ...key, name: character, text: alt ? '' : character });
  }

  /** @param modifiers xterm's encoding: 1 + shift 1 + alt 2 + ctrl 4 */
  #give(name: string, modifiers: number): void {
    const bits = modifiers - 1;
    this.#take({
      name,
      shift: (bits & 1) !== 0,
      alt: (bits & 2) !== 0,
      ctrl: (bits & 4) !== 0,
      text: '',
    });
  }

  /** If a sequence was not completed in time, it was the Esc key followed by other keys. */
  #giveUp(): void {
    const text = this.#pending.slice(1);
    this.#pending = '';
    this.#give('escape', 1);
    for (const character of text) this.#character(character, false);
  }
}
