import type { Place, Problem } from '../base/problem.ts';
import { warning } from './problems.ts';
import type { Advice } from './problems.ts';
import type { Token } from './corefile-tree.ts';

/** A token in the file, before environment references are replaced. */
export interface RawToken extends Token {
  /** True if it is the first token on its line. */
  readonly first: boolean;
}

/** The words in a file, and any warnings about them. */
export interface Lexed {
  readonly tokens: readonly RawToken[];
  readonly warnings: readonly Problem[];
}

/**
 * Splits a text into words. A word that begins with `"` extends to the next `"`, even across lines. `\"` is the only
 * escape. A `#` at the start of a word begins a comment that extends to the end of the line. A `#` inside a word hides
 * only the rest of that word, and the text after the next blank counts again. Because this is surprising, it is
 * reported. Time and memory are linear in the text's length.
 */
export function lex(text: string, file: string): Lexed {
  return new Lexer(text, file).run();
}

class Lexer {
  readonly #text: string;
  readonly #file: string;
  readonly #tokens: RawToken[] = [];
  readonly #warnings: Problem[] = [];
  #at = 0;
  #line = 1;
  #lineStart = 0;
  /** The line on which the last token ended. */
  #lastLine = 0;

  constructor(text: string, file: string) {
    this.#text = text;
    this.#file = file;
    if (text.startsWith('\uFEFF')) {
      this.#at = 1;
      this.#lineStart = 1;
    }
  }

  run(): Lexed {
    const text = this.#text;
    while (this.#at < text.length) {
      const code = text.charCodeAt(this.#at);
      if (code === NEWLINE) {
        this.#at++;
        this.#newLine();
      } else if (isBlank(code)) this.#at++;
      else if (code === HASH) this.#skipLine();
      else if (code === QUOTE) this.#quoted();
      else this.#bare();
    }
    return { tokens: this.#tokens, warnings: this.#warnings };
  }

  #newLine(): void {
    this.#line++;
    this.#lineStart = this.#at;
  }

  #skipLine(): void {
    const end = this.#text.indexOf('\n', this.#at);
    this.#at = end < 0 ? this.#text.length : end;
  }

  #bare(): void {
    const text = this.#text;
    const place = this.#place();
    const start = this.#at;
    let end = start;
    while (end < text.length) {
      const code = text.charCodeAt(end);
      if (code === HASH || (code !== CARRIAGE_RETURN && isBlank(code))) break;
      end++;
    }
    this.#at = end;
    this.#add(text.slice(start, end).replaceAll('\r', ''), false, place);
    if (text.charCodeAt(end) === HASH) this.#hiddenTail(place);
  }

  /** Reports `word#tail more`, where the tail is dropped but `more` is a word again. */
  #hiddenTail(place: Place): void {
    const text = this.#text;
    while (this.#at < text.length) {
      const code = text.charCodeAt(this.#at);
      if (code !== CARRIAGE_RETURN && isBlank(code)) break;
      this.#at++;
    }
    let after = this.#at;
    while (after < text.length && text.charCodeAt(after) !== NEWLINE) {
      if (!isBlank(text.charCodeAt(after))) break;
      after++;
    }
    const next = text.charCodeAt(after);
    if (after === text.length || next === NEWLINE || next === HASH) return;
    if (this.#warnings.at(-1)?.place?.line === place.line) return;
    this.#warn(place, 'the words after this # are not a comment but are read as arguments', {
      code: 'comment-in-word',
      hint: 'A # inside a word hides only the rest of that word.',
      remedy: 'Put a blank before the #.',
    });
  }

  #quoted(): void {
    const text = this.#text;
    const place = this.#place();
    const parts: string[] = [];
    let from = this.#at + 1;
    let at = from;
    for (; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) break;
      if (code === BACKSLASH && at + 1 < text.length) {
        at++;
        if (text.charCodeAt(at) === QUOTE) {
          parts.push(text.slice(from, at - 1));
          from = at;
        }
      }
      if (text.charCodeAt(at) === NEWLINE) {
        this.#at = at + 1;
        this.#newLine();
      }
    }
    const closed = at < text.length;
    parts.push(closed ? text.slice(from, at) : withoutOpenEscape(text.slice(from)));
    const value = parts.join('');
    this.#at = closed ? at + 1 : at;
    if (closed || value !== '') this.#add(value, true, place);
    if (!closed) {
      this.#warn(place, 'this quote is never closed, so the rest of the file is one word', {
        code: 'quote-open',
        remedy: 'Close it with ".',
      });
    }
  }

  #place(): Place {
    return { file: this.#file, line: this.#line, column: this.#at - this.#lineStart + 1 };
  }

  #add(text: string, quoted: boolean, place: Place): void {
    this.#tokens.push({ text, place, quoted, first: place.line > this.#lastLine });
    this.#lastLine = this.#line;
  }

  #warn(place: Place, text: string, advice: Advice): void {
    if (this.#warnings.length < WARNINGS_MAX) this.#warnings.push(warning(place, text, advice));
  }
}

/** Maximum number of warnings per file. */
const WARNINGS_MAX = 100;

/** Drops a backslash at the end of the file, because there is nothing for it to escape. */
function withoutOpenEscape(text: string): string {
  let start = text.length;
  while (start > 0 && text.charCodeAt(start - 1) === BACKSLASH) start--;
  return (text.length - start) % 2 === 1 ? text.slice(0, -1) : text;
}

const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const QUOTE = 0x22;
const HASH = 0x23;
const BACKSLASH = 0x5c;

/** Returns true for Unicode white space, including a carriage return. */
function isBlank(code: number): boolean {
  if (code <= 0x20) return code === 0x20 || (code >= 0x09 && code <= 0x0d);
  if (code < 0x85) return false;
  if (code < 0x1680) return code === 0x85 || code === 0xa0;
  return (
    (code >= 0x2000 && code <= 0x200a) ||
    code === 0x1680 ||
    code === 0x2028 ||
    code === 0x2029 ||
    code === 0x202f ||
    code === 0x205f ||
    code === 0x3000
  );
}

/** Returns true if a word has to be quoted for it to be parsed back unchanged. */
export function needsQuotes(text: string): boolean {
  if (text === '' || text.startsWith('"')) return true;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === HASH || isBlank(code)) return true;
  }
  return false;
}

/**
 * Creates the token for the tree as plain data, without the lexer's own fields.
 * @param text the token's text with environment references replaced
 */
export function tokenOf({ place, quoted }: Token, text: string): Token {
  return { text, place, quoted };
}
