import { Problem, type Place } from '../base/problem.ts';

/** One word in a zone file. Quotes around it are removed, but escapes stay. */
export interface ZoneWord {
  readonly text: string;
  /** True if it began with a quote, and so is not a keyword. */
  readonly quoted: boolean;
  readonly line: number;
  readonly column: number;
}

/** One logical line in a zone file. Parentheses join physical lines. */
export interface ZoneEntry {
  /** True if the line begins with a blank. The owner is then the same as the previous record's. */
  readonly indented: boolean;
  readonly words: readonly ZoneWord[];
  /** End of the entry, which is the position reported if something is missing. */
  readonly line: number;
  readonly column: number;
}

/** Creates an error in a zone file: `FILE:LINE:COLUMN: TEXT`. */
export function zoneProblem(text: string, place: Place, hint?: string): Problem {
  const where = `${place.file}:${place.line}:${place.column}`;
  return new Problem({ code: 'bad-zone-text', text: `${where}: ${text}`, place, hint });
}

/**
 * Maximum number of characters in a word. A record's data has at most 65 535 bytes, each written in up to four
 * characters (`\DDD`).
 */
const WORD_MAX = 4 * 65_535;
/**
 * Maximum number of words in an entry. There may be one for each byte of data (as in a list of empty strings), plus the
 * words before the data.
 */
const WORDS_MAX = 65_540;

/**
 * Splits a zone file into its entries, skipping empty ones (RFC 1035 section 5.1).
 * @throws Problem
 */
export class ZoneLexer {
  readonly #text: string;
  readonly #file: string;
  #at = 0;
  #line = 1;
  #lineStart = 0;
  /** True while an entry is being read. */
  #within = false;

  constructor(text: string, file: string) {
    this.#text = text;
    this.#file = file;
  }

  /** Returns the next entry, or null at the end. */
  next(): ZoneEntry | null {
    while (this.#at < this.#text.length) {
      const indented = isBlank(this.#text[this.#at]!);
      this.#within = true;
      const words = this.#words();
      this.#within = false;
      const entry = { indented, words, line: this.#line, column: this.#column };
      this.#newline();
      if (words.length > 0) return entry;
    }
    return null;
  }

  /** Skips the rest of an invalid line and continues with the next one. */
  recover(): void {
    if (!this.#within) return;
    while (this.#at < this.#text.length && this.#text[this.#at] !== '\n') this.#at++;
    this.#newline();
  }

  get #column(): number {
    return this.#at - this.#lineStart + 1;
  }

  /** Returns the words up to the end of the line, or to the end of the parentheses opened in it. */
  #words(): ZoneWord[] {
    const words: ZoneWord[] = [];
    let opened: Place | null = null;
    for (;;) {
      const char = this.#text[this.#at];
      if (char === undefined || char === '\n') {
        if (opened === null) return words;
        if (char === undefined) throw zoneProblem('parenthesis is never closed', opened);
        this.#newline();
      } else if (isBlank(char)) {
        this.#at++;
      } else if (char === ';') {
        while (this.#at < this.#text.length && this.#text[this.#at] !== '\n') this.#at++;
      } else if (char === '(') {
        if (opened !== null) throw zoneProblem('parenthesis within parentheses', this.#place());
        opened = this.#place();
        this.#at++;
      } else if (char === ')') {
        if (opened === null)
          throw zoneProblem('closing parenthesis without an opening one', this.#place());
        opened = null;
        this.#at++;
      } else {
        if (words.length >= WORDS_MAX)
          throw zoneProblem('more words than any record can have', this.#place());
        words.push(this.#word());
      }
    }
  }

  #word(): ZoneWord {
    const begin = this.#place();
    const { line, column } = begin;
    const quoted = this.#text[this.#at] === '"';
    let text = '';
    while (this.#at < this.#text.length) {
      const char = this.#text[this.#at]!;
      if (char === '"') return { text: text + this.#quoted(), quoted, line, column };
      if (isBlank(char) || '\n;()'.includes(char)) break;
      if (char === '\\') {
        text += this.#escape();
        this.#at++;
      } else {
        plain.lastIndex = this.#at;
        plain.test(this.#text);
        const run = this.#text.slice(this.#at, plain.lastIndex);
        text = text === '' ? run : text + run;
        this.#at = plain.lastIndex;
      }
      if (text.length > WORD_MAX) throw tooLong(begin);
    }
    return { text, quoted, line, column };
  }

  /** Returns the text between quotes. Inside a word, the closing quote ends that word (`alpn="h2,h3"`). */
  #quoted(): string {
    const begin = this.#place();
    let text = '';
    for (this.#at++; ; this.#at++) {
      within.lastIndex = this.#at;
      within.test(this.#text);
      const run = this.#text.slice(this.#at, within.lastIndex);
      text = text === '' ? run : text + run;
      if (text.length > WORD_MAX) throw tooLong(begin);
      this.#at = within.lastIndex;
      const char = this.#text[this.#at];
      if (char === undefined || char === '\n') throw zoneProblem('quote is never closed', begin);
      if (char === '"') {
        this.#at++;
        return text;
      }
      text += this.#escape();
    }
  }

  /** Reads an escape, ending at its last character. */
  #escape(): string {
    const next = this.#text[this.#at + 1];
    if (next === undefined || next === '\n')
      throw zoneProblem('backslash at the end of a line', this.#place());
    this.#at++;
    return `\\${next}`;
  }

  #newline(): void {
    if (this.#text[this.#at] !== '\n') return;
    this.#at++;
    this.#line++;
    this.#lineStart = this.#at;
  }

  #place(): Place {
    return { file: this.#file, line: this.#line, column: this.#column };
  }
}

function tooLong(place: Place): Problem {
  return zoneProblem('the word is longer than any record', place, 'Is a quote missing?');
}

/** The longest run of ordinary characters in a word. */
const plain = /[^ \t\r\n;()"\\]+/y;
/** The longest run of characters between quotes, possibly empty. */
const within = /[^"\n\\]*/y;

function isBlank(char: string): boolean {
  return char === ' ' || char === '\t' || char === '\r';
}
