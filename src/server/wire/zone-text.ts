import { Problem, type Place } from '../base/problem.ts';
import { parseHex } from './encoding.ts';
import { CLASS, classNumber, TYPE, typeName, typeNumber } from './iana.ts';
import { dataOf, readData, type DnsRecord } from './message.ts';
import { parseName, printName, ROOT, type WireName } from './name.ts';
import { Reader, ReadError } from './reader.ts';
import { kindOf, soa } from './record/table.ts';
import { parseTtl } from './ttl.ts';
import { absoluteName, TextError, Words } from './record-words.ts';
import { ZoneLexer, zoneProblem, type ZoneEntry, type ZoneWord } from './zone-lexer.ts';

/** Options for reading a zone file. */
export interface ZoneTextParts {
  /** Name of the file, for error messages. */
  readonly file: string;
  /** The initial origin, until `$ORIGIN` sets another. By default, this is the root. */
  readonly origin?: string;
  /** TTL in seconds for records that have none, if neither `$TTL` nor an earlier record nor the SOA provides one. */
  readonly ttl?: number;
  /**
   * Reads a file for `$INCLUDE`. `name` is the name as written, and `from` the start of the line. Any exceptions are
   * passed on. Without this function, `$INCLUDE` is a problem.
   */
  readonly include?: (
    name: string,
    from: Place,
  ) => { readonly file: string; readonly text: string };
  /** Called for each error, after which reading continues. Without this function, the first error is thrown. */
  readonly problem?: (problem: Problem) => void;
}

/** A record with its position in the file. */
export interface ZoneRecord extends DnsRecord {
  readonly place: Place;
}

/** The same, but with the owner in wire form, spelled as in the file. */
export interface OwnedRecord extends Omit<DnsRecord, 'name'> {
  readonly owner: WireName;
  readonly place: Place;
}

/** Maximum nesting of `$INCLUDE` files. Deeper nesting is most likely a loop. */
const INCLUDE_DEPTH_MAX = 16;
/** Maximum number of files that one zone may include. */
const INCLUDE_COUNT_MAX = 1000;
/** Maximum number of records that all of a zone's `$GENERATE` lines may create. */
const GENERATE_MAX = 4_000_000;
/** Maximum TTL (RFC 2181 section 8). */
const TTL_MAX = 0x7fff_ffff;

/**
 * Yields the records in a zone file one at a time. It supports RFC 1035 section 5 with `$TTL` (RFC 2308), BIND's
 * `$GENERATE`, TTL units, and RFC 3597's generic forms. Only checks that need a single record are performed.
 * @throws Problem at the first error, with file, line and column, unless there is `parts.problem`
 */
export function* parseZone(text: string, parts: ZoneTextParts): Generator<ZoneRecord> {
  for (const { owner, type, class: rclass, ttl, data, place } of parseOwned(text, parts))
    yield { name: printName(owner), type, class: rclass, ttl, data, place };
}

/**
 * Works like `parseZone`, but with owners in wire form, for callers that store wire names and need no text.
 * @throws Problem as `parseZone`
 */
export function parseOwned(text: string, parts: ZoneTextParts): Generator<OwnedRecord> {
  return new ZoneParser(parts).parse(text, parts.file, 0);
}

/**
 * Parses one record, e.g. `www.example.org. 30 IN A 192.0.2.1`. The default TTL is 3600 seconds.
 * @throws Problem
 */
export function parseRecord(text: string, origin = '.', file = 'record'): DnsRecord {
  const [record, second] = parseZone(text, { file, origin, ttl: 3600 });
  if (record === undefined) throw zoneProblem('there is no record', { file, line: 1, column: 1 });
  if (second !== undefined) throw zoneProblem('there is a second record', second.place);
  const { place: _, ...rest } = record;
  return rest;
}

class ZoneParser {
  readonly #parts: ZoneTextParts;
  #origin: WireName;
  #owner: WireName | null = null;
  #class: number = CLASS.IN;
  #defaultTtl: number | null = null;
  #lastTtl: number | null = null;
  #includes = 0;
  #generated = 0;

  constructor(parts: ZoneTextParts) {
    this.#parts = parts;
    this.#origin = parts.origin === undefined ? ROOT : parseName(parts.origin);
  }

  *parse(text: string, file: string, depth: number): Generator<OwnedRecord> {
    const lexer = new ZoneLexer(text, file);
    for (;;) {
      try {
        const entry = lexer.next();
        if (entry === null) return;
        const line = new EntryWords(entry, file);
        const first = entry.words[0]!;
        if (entry.indented || first.quoted || !first.text.startsWith('$')) yield this.#record(line);
        else if (first.text.toUpperCase() === '$INCLUDE') yield* this.#include(line, depth);
        else if (first.text.toUpperCase() === '$GENERATE') yield* this.#generate(line);
        else this.#control(line);
      } catch (error) {
        const { problem } = this.#parts;
        if (problem === undefined || !(error instanceof Problem)) throw error;
        problem(error);
        lexer.recover();
      }
    }
  }

  /** Expands `$GENERATE 1-9/2 host-$ A 10.0.0.$` to one record per number, which replaces `$`. */
  *#generate(line: EntryWords): Generator<OwnedRecord> {
    line.next('$GENERATE');
    const range = /^(\d{1,9})-(\d{1,9})(?:\/(\d{1,9}))?$/.exec(line.next('the range').text);
    const [from, to, step] = [Number(range?.[1]), Number(range?.[2]), Number(range?.[3] ?? 1)];
    if (range === null || from > to || step === 0)
      return line.fail('the range must be FROM-TO or FROM-TO/STEP, as in 1-254');
    this.#generated += Math.floor((to - from) / step) + 1;
    if (this.#generated > GENERATE_MAX)
      line.fail(`$GENERATE creates more than ${GENERATE_MAX} records`);
    for (let number = from; number <= to; number += step) yield this.#record(line.numbered(number));
  }

  #control(line: EntryWords): void {
    const word = line.next('a directive');
    switch (word.text.toUpperCase()) {
      case '$ORIGIN':
        this.#origin = this.#name(line, 'the origin');
        break;
      case '$TTL':
        this.#defaultTtl = this.#ttl(line);
        break;
      default:
        line.fail(`unknown directive ${word.text}; known: $ORIGIN, $TTL, $INCLUDE and $GENERATE`);
    }
    line.end();
  }

  *#include(line: EntryWords, depth: number): Generator<OwnedRecord> {
    line.next('$INCLUDE');
    const { include } = this.#parts;
    const name = line.next('the name of a file');
    const origin = this.#origin;
    const owner = this.#owner;
    const inner = line.left > 0 ? this.#name(line, 'the origin') : origin;
    line.end();
    if (include === undefined) line.fail('$INCLUDE is not possible here');
    if (depth >= INCLUDE_DEPTH_MAX)
      line.fail(`more than ${INCLUDE_DEPTH_MAX} files are nested; check for a loop`);
    if (++this.#includes > INCLUDE_COUNT_MAX)
      line.fail(`more than ${INCLUDE_COUNT_MAX} files are included`);
    const { file, text } = include(name.text, line.place(0));
    this.#origin = inner;
    yield* this.parse(text, file, depth + 1);
    // An origin set in the included file is valid only until the end of that file (RFC 1035 section 5.1).
    this.#origin = origin;
    this.#owner = owner;
  }

  #record(line: EntryWords): OwnedRecord {
    const place = line.place(0);
    if (!line.indented) this.#owner = this.#name(line, 'the owner');
    const owner = this.#owner;
    if (owner === null) return line.fail('the first record has no owner', 0);
    const ttl = this.#ttlAndClass(line);
    const type = this.#type(line);
    const data = this.#data(line, type);
    return {
      owner,
      type,
      class: this.#class,
      ttl: this.#ttlFor(type, data, ttl, line),
      data,
      place,
    };
  }

  /** Reads TTL and class, each at most once, in either order. */
  #ttlAndClass(line: EntryWords): number | null {
    let ttl: number | null = null;
    let classSeen = false;
    for (;;) {
      const word = line.peek();
      if (word === null || word.quoted) return ttl;
      const number = classNumber(word.text);
      if (!classSeen && number !== null && number !== CLASS.ANY && number !== CLASS.NONE) {
        this.#class = number;
        classSeen = true;
        line.next('the class');
      } else if (ttl === null && /^\d/.test(word.text)) {
        ttl = this.#ttl(line);
      } else {
        return ttl;
      }
    }
  }

  #ttl(line: EntryWords): number {
    const { text } = line.next('the TTL');
    const ttl = parseTtl(text);
    if (ttl === null || ttl > TTL_MAX) {
      return line.fail(
        `the TTL must be seconds below 2147483648, optionally with units (1h30m), not ${JSON.stringify(text)}`,
      );
    }
    return ttl;
  }

  /**
   * Returns a record's TTL. This is its own, else `$TTL`, else the previous record's, else the SOA's minimum, else the
   * default.
   */
  #ttlFor(type: number, data: object, own: number | null, line: EntryWords): number {
    if (own !== null) this.#lastTtl = own;
    else if (type === TYPE.SOA && this.#lastTtl === null)
      this.#lastTtl = dataOf({ name: '', class: 0, ttl: 0, type, data }, soa)?.minimum ?? null;
    const ttl = own ?? this.#defaultTtl ?? this.#lastTtl ?? this.#parts.ttl;
    return ttl ?? line.fail('there is no TTL; write $TTL before the first record', 0);
  }

  #type(line: EntryWords): number {
    const word = line.next('the type');
    const type = word.quoted ? null : typeNumber(word.text);
    if (type === null)
      return line.fail(`${JSON.stringify(word.text)} is not a TTL, class or record type`);
    if (type === TYPE.OPT || type === 0 || (type >= TYPE.IXFR && type <= TYPE.ANY)) {
      line.fail(`${typeName(type)} is not a record type`);
    }
    return type;
  }

  #data(line: EntryWords, type: number): object {
    const first = line.peek();
    const generic = first !== null && !first.quoted && first.text === '\\#';
    const kind = kindOf(type);
    if (kind === undefined && !generic)
      line.fail(`data of ${typeName(type)} can only be written as \\# LENGTH HEX`);
    const begin = line.index;
    const words = new Words(line.rest(), this.#origin);
    try {
      if (generic) return readGeneric(words, type);
      const data = kind!.parse(words);
      if (words.left > 0) words.fail(`${kind!.name} has too many words`, words.index);
      return data;
    } catch (error) {
      if (error instanceof TextError) return line.fail(error.message, begin + error.index);
      throw error;
    }
  }

  #name(line: EntryWords, what: string): WireName {
    return absoluteName(line.next(what).text, this.#origin, (reason) => line.fail(reason));
  }
}

/** Reads the generic form `\# LENGTH HEX` (RFC 3597 section 5). If the type is known, decodes the bytes. */
function readGeneric(words: Words, type: number): object {
  words.next('\\#');
  const length = words.number('the length of the data', 0xffff);
  const bytes = parseHex(words.joined());
  if (bytes === null) return words.fail('the data must be hex');
  if (bytes.length !== length) words.fail(`the data has ${bytes.length} bytes, not ${length}`, 1);
  try {
    return readData(new Reader(bytes), type, length);
  } catch (error) {
    if (error instanceof ReadError)
      return words.fail(`the data is not ${typeName(type)}: ${error.message}`, 2);
    throw error;
  }
}

class EntryWords {
  readonly file: string;
  index = 0;
  readonly #entry: ZoneEntry;

  constructor(entry: ZoneEntry, file: string) {
    this.#entry = entry;
    this.file = file;
  }

  get indented(): boolean {
    return this.#entry.indented;
  }

  get left(): number {
    return this.#entry.words.length - this.index;
  }

  peek(): ZoneWord | null {
    return this.#entry.words[this.index] ?? null;
  }

  next(what: string): ZoneWord {
    const word = this.peek();
    if (word === null) return this.fail(`${what} is missing`, this.index);
    this.index++;
    return word;
  }

  /** Returns the rest of the line, with `$` replaced by `number`. */
  numbered(number: number): EntryWords {
    const words = this.#entry.words.slice(this.index).map((word, index) => {
      const text = word.text.replaceAll(
        /\\.|\$\$|\$(?:\{([^}]*)\})?/g,
        (found: string, form: string | undefined) => {
          if (found.startsWith('\\')) return found === '\\$' ? '$' : found;
          if (found === '$$') return '$';
          return (
            numberText(number, form ?? '0') ??
            this.fail(
              'a format after $ is ${OFFSET,WIDTH,BASE}, as in ${0,3,d}',
              this.index + index,
            )
          );
        },
      );
      return { ...word, text };
    });
    return new EntryWords({ ...this.#entry, indented: false, words }, this.file);
  }

  rest(): string[] {
    const words = this.#entry.words.slice(this.index).map(({ text }) => text);
    this.index += words.length;
    return words;
  }

  end(): void {
    if (this.left > 0) this.fail('a word too many', this.index);
  }

  /** Returns the position of word `index`, or the end of the entry. */
  place(index: number): Place {
    const { line, column } = this.#entry.words[index] ?? this.#entry;
    return { file: this.file, line, column };
  }

  /** @param index default: the word just read */
  fail(reason: string, index: number = Math.max(0, this.index - 1)): never {
    throw zoneProblem(reason, this.place(index));
  }
}

/** Formats a number according to `OFFSET[,WIDTH[,BASE]]` in `$GENERATE`. Returns null if `form` is malformed. */
function numberText(number: number, form: string): string | null {
  const parts = /^(-?\d{1,9})(?:,(\d{1,2})(?:,([doxXnN]))?)?$/.exec(form);
  if (parts === null) return null;
  const value = number + Number(parts[1]);
  const width = Number(parts[2] ?? 0);
  const base = parts[3] ?? 'd';
  if (value < 0) return null;
  if (base === 'd') return String(value).padStart(width, '0');
  if (base === 'o') return value.toString(8).padStart(width, '0');
  const hex = value.toString(16);
  const digits = base === 'X' || base === 'N' ? hex.toUpperCase() : hex;
  if (base !== 'n' && base !== 'N') return digits.padStart(width, '0');
  // Nibbles with the last one first, as in names in ip6.arpa. The width includes the dots.
  const least = Math.max(digits.length, Math.floor((width + 1) / 2));
  return digits.padStart(least, '0').split('').toReversed().join('.');
}
