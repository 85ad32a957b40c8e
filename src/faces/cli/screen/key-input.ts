/** Reads a terminal's bytes as keys: escape sequences, control characters, pasted text. */
import type { Clock, Timer } from '../../../server/base/clock.ts';

/** A key that was pressed, or text that was pasted. */
export interface KeyPress {
  /** The character as typed, or a name: `up`, `enter`, `f1`, `paste`. */
  readonly name: string;
  readonly ctrl: boolean;
  readonly alt: boolean;
  readonly shift: boolean;
  /** The characters that it adds to a line of input; empty for keys that only command. */
  readonly text: string;
}

/**
 * Milliseconds after which an escape character is the key Esc. The rest of a sequence comes in the
 * same packet, except over slow links.
 */
const ESCAPE_MS = 50;
/** Longest sequence that is understood; longer ones are skipped to their end. */
const SEQUENCE_MAX = 32;
/** The most characters of pasted text that are stored. */
const PASTE_MAX = 4096;

const PASTE_END = '\u001b[201~';

/** Final letter of a sequence `CSI … letter` or `SS3 letter` (xterm, VT220). */
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

/** First number of a sequence `CSI number ~`. */
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

/** Turns the bytes of a terminal into keys, however they are cut into pieces. */
export class KeyInput {
  readonly #take: (key: KeyPress) => void;
  readonly #clock: Clock;
  readonly #decoder = new TextDecoder();
  #pending = '';
  /** Text of a paste that has not ended; null: none. */
  #pasted: string | null = null;
  /** Inside a string (OSC, DCS, APC) that a terminal sends about itself: it is skipped. */
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

  /** @returns whether it consumed part of the pending text */
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
    // Parameters and intermediates, then one final character (ECMA-48, section 5.4).
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
    // The end may be cut: as much as it has stays.
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

  /** A string ends with BEL, or with ESC and a backslash. */
  #skipString(): boolean {
    // eslint-disable-next-line no-control-regex -- what terminals send
    const end = /\u0007|\u001b\\/.exec(this.#pending);
    this.#inString = end === null;
    // A final ESC may be the first half of the end.
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

  /** @param modifiers as xterm has them: 1 + shift 1 + alt 2 + ctrl 4 */
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

  /** A sequence that was not completed in time was the key Esc, and typed keys after it. */
  #giveUp(): void {
    const text = this.#pending.slice(1);
    this.#pending = '';
    this.#give('escape', 1);
    for (const character of text) this.#character(character, false);
  }
}
