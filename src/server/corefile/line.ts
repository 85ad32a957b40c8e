import type { Place } from '../base/problem.ts';
import type { Advice } from './problems.ts';
import type { Property, Token } from './corefile-tree.ts';
import { Wrong } from './word-values.ts';
import type { Value } from './word-values.ts';

/** State shared while binding the lines of one directive. */
export interface Binding {
  /** The zones in the block's keys. */
  readonly zones: readonly string[];
  problem(place: Place, text: string, advice?: Advice): void;
  warning(place: Place, text: string, advice?: Advice): void;
}

/**
 * The words on a line, which can be consumed from either end. An unexpected word throws a `LineRefusal`, which ends
 * only this line. The other lines are still bound, so that all errors in a file are reported at once.
 */
export class DirectiveLine {
  /** The name of the directive or property itself. */
  readonly name: Token;
  readonly binding: Binding;
  /** The lines inside the braces that follow, if there are any. */
  readonly block: readonly Property[] | null;
  readonly #words: Token[];
  /** The syntax of the whole line: `forward FROM TO…`. */
  readonly #form: string;
  #last: Token;
  /**
   * The treatment of surplus words. They are an error, or ignored with a warning because CoreDNS ignores them, or left
   * for the next line.
   */
  tail: 'refused' | 'unread' | 'next' = 'refused';
  /** A valid word for a line with a single one, which hints show. Empty if there is none. */
  example: string = '';

  constructor(
    name: Token,
    args: readonly Token[],
    block: readonly Property[] | null,
    binding: Binding,
    form: string,
  ) {
    this.#form = form;
    this.name = name;
    this.binding = binding;
    this.block = block;
    this.#words = [...args];
    this.#last = args.at(-1) ?? name;
  }

  get left(): number {
    return this.#words.length;
  }

  peek(): Token | null {
    return this.#words[0] ?? null;
  }

  /** Consumes the next word. If there is none, the line is rejected as in CoreDNS. */
  take(): Token {
    return this.#words.shift() ?? this.refuseCount();
  }

  takeLast(): Token {
    return this.#words.pop() ?? this.refuseCount();
  }

  takeAll(): readonly Token[] {
    return this.#words.splice(0);
  }

  read<T>(value: Value<T>, word: Token): T {
    const found = value.read(word);
    if (!(found instanceof Wrong)) return found;
    const { text, hint } = found;
    // Omit a hint that the text already contains.
    const isNews = hint !== null && !text.toLowerCase().includes(hint.toLowerCase());
    return this.refuse(text, word.place, {
      hint: this.#placed(value.show, text, isNews ? hint : ''),
    });
  }

  /** The hint, with the line's syntax if a placeholder of that syntax appears in it or in the text. */
  #placed(show: string, text: string, hint: string): string | null {
    const hasPlaceholder = [text, hint].some((each) => each.split(/[ :]/).includes(show));
    if (!isPlaceholder.test(show) || !hasPlaceholder) return hint === '' ? null : hint;
    return hint === ''
      ? `Syntax: ${this.#form}${this.#exampleText}`
      : `In ${this.#form}, ${hint}${this.#exampleText}`;
  }

  get #exampleText(): string {
    return this.example === '' ? '' : `. Example: ${this.name.text} ${this.example}`;
  }

  /** Parses each of the remaining words as this value, and reports every word that does not fit. */
  readAll<T>(value: Value<T>): readonly T[] {
    const refusals: LineRefusal[] = [];
    const found: T[] = [];
    for (const word of this.takeAll()) {
      try {
        found.push(this.read(value, word));
      } catch (error) {
        if (!(error instanceof LineRefusal)) throw error;
        refusals.push(error);
      }
    }
    const last = refusals.pop();
    for (const { place, message, advice } of refusals) this.binding.problem(place, message, advice);
    if (last !== undefined) throw last;
    return found;
  }

  /** Ends the binding of this line with a problem. */
  refuse(text: string, place: Place = this.name.place, advice: Advice = {}): never {
    throw new LineRefusal(text, place, advice);
  }

  /** Rejects the line if any words are left. */
  end(): void {
    const [first] = this.#words;
    if (first === undefined) return;
    if (this.tail === 'next') return;
    if (this.tail === 'refused') this.refuseCount();
    this.#words.length = 0;
    this.binding.warning(first.place, `the words from '${first.text}' on are ignored`, {
      code: 'words-not-read',
      hint: `Syntax: ${this.#form}`,
      remedy: 'Take it away.',
    });
  }

  /** Warns that this line replaces earlier ones, even though they look cumulative. */
  replacesOthers(): void {
    const { text, place } = this.name;
    this.binding.warning(place, `only the last of several '${text}' lines has an effect`, {
      code: 'property-repeated',
      remedy: 'Put everything on one line, or remove the others.',
    });
  }

  /** Reports too many words, or too few. */
  refuseCount(): never {
    const text =
      this.left === 0 && this.block !== null
        ? "Unexpected token '{', expecting argument"
        : `Wrong argument count or unexpected line ending after '${this.#last.text}'`;
    const hint = `Syntax: ${this.#form}${this.#exampleText}`;
    throw new LineRefusal(text, this.#last.place, { code: 'argument-count', hint });
  }
}

/** A word in a syntax that stands for a value: `MAX`, `TTL`. */
const isPlaceholder = /^[A-Z][A-Z_]*$/;

/** Thrown by `DirectiveLine` for a line that cannot be bound. The caller turns it into a problem. */
export class LineRefusal extends Error {
  readonly place: Place;
  readonly advice: Advice;

  constructor(text: string, place: Place, advice: Advice) {
    super(text);
    this.place = place;
    this.advice = advice;
  }
}
