import { parseString, printString } from './encoding.ts';
import {
  isAbsoluteName,
  joinNames,
  NameError,
  parseName,
  printName,
  type WireName,
} from './name.ts';

/** Explains why a record's text is invalid, and which word is to blame. */
export class TextError extends Error {
  override readonly name = 'TextError';
  /** Index of the word in the record's data. */
  readonly index: number;

  constructor(reason: string, index: number) {
    super(reason);
    this.index = index;
  }
}

/**
 * Reads the words of a record's data. Quotes around words are removed, but escapes within them are not. All errors are
 * TextErrors.
 */
export class Words {
  index = 0;
  readonly #words: readonly string[];
  /** The origin. Names without a final dot are relative to it. */
  readonly #origin: WireName;

  constructor(words: readonly string[], origin: WireName) {
    this.#words = words;
    this.#origin = origin;
  }

  get left(): number {
    return this.#words.length - this.index;
  }

  /**
   * Returns the next word.
   * @param what the field's name, for the error message
   */
  next(what: string): string {
    const word = this.#words[this.index++];
    if (word === undefined) this.fail(`${what} is missing`, this.index - 1);
    return word;
  }

  /** Returns all remaining words, joined without blanks. */
  joined(): string {
    const text = this.#words.slice(this.index).join('');
    this.index = this.#words.length;
    return text;
  }

  number(what: string, most: number): number {
    const word = this.next(what);
    const value = /^\d{1,15}$/.test(word) ? Number(word) : Infinity;
    if (value > most)
      this.fail(`${what} must be a number from 0 to ${most}, not ${JSON.stringify(word)}`);
    return value;
  }

  /** Reads a name as absolute text. `@` stands for the origin. */
  domain(what: string): string {
    return printName(this.wireName(what));
  }

  wireName(what: string): WireName {
    return absoluteName(this.next(what), this.#origin, (reason) => this.fail(reason));
  }

  /** Reads a character string, with its escapes in the form used for printing. */
  string(what: string, most = 255): string {
    const word = this.next(what);
    const bytes = parseString(word);
    if (bytes === null)
      this.fail(`${what} has a bad escape: a backslash must precede a character or three digits`);
    if (bytes.length > most)
      this.fail(`${what} has ${bytes.length} bytes, at most ${most} are allowed`);
    return printString(bytes);
  }

  /** @param index default: the word just read */
  fail(reason: string, index: number = Math.max(0, this.index - 1)): never {
    throw new TextError(reason, index);
  }
}

/**
 * Converts a name in a zone file to wire form. `@` stands for the origin, and names without a final dot are relative to
 * it.
 */
export function absoluteName(
  word: string,
  origin: WireName,
  fail: (reason: string) => never,
): WireName {
  if (word === '@') return origin;
  try {
    const name = parseName(word);
    if (isAbsoluteName(word)) return name;
    return joinNames(name, origin) ?? fail(`${word} below its origin is longer than 255 bytes`);
  } catch (error) {
    if (error instanceof NameError) fail(error.message);
    throw error;
  }
}
