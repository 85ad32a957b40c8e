import { PatternError } from './re2.ts';

/** What an instruction does; `x` and `y` are its operands. */
export const STEP = {
  /** A character of set `x`. */
  set: 0,
  /** Goes on at `x`, and should that fail at `y`. */
  fork: 1,
  jump: 2,
  /** Remembers the place in mark `x`. */
  mark: 3,
  /** Goes on if condition `x` holds at this place. */
  assert: 4,
  match: 5,
} as const;

/** Conditions of `assert`, by the source that re2.ts writes for them. */
export const CONDITIONS: readonly string[] = [
  '(?<![^])',
  '(?![^])',
  '(?<![^\\n])',
  '(?![^\\n])',
  '\\b',
  '\\B',
];

/** An expression as instructions: a machine that stands at several of them at once would be in one state of each. */
export interface Program {
  readonly steps: Uint8Array;
  readonly x: Int32Array;
  readonly y: Int32Array;
  readonly sets: readonly CharacterSet[];
  readonly groupCount: number;
  readonly names: ReadonlyMap<string, number>;
}

/** Characters of one kind. */
export class CharacterSet {
  /** 1 for members below 128. */
  readonly ascii: Uint8Array;
  readonly #expression: RegExp;

  constructor(source: string, ignoreCase: boolean) {
    this.#expression = new RegExp(`^(?:${source})$`, ignoreCase ? 'iu' : 'u');
    this.ascii = Uint8Array.from({ length: 128 }, (_, code) =>
      this.#expression.test(String.fromCharCode(code)) ? 1 : 0,
    );
  }

  holds(code: number): boolean {
    return code < 128 ? this.ascii[code] === 1 : this.#expression.test(String.fromCodePoint(code));
  }
}

/** Instructions of one expression, as Go limits them too. */
const STEPS_MAX = 10_000;

type Part =
  | { readonly kind: 'set'; readonly set: number }
  | { readonly kind: 'assert'; readonly condition: number }
  | { readonly kind: 'group'; readonly index: number; readonly inner: Part }
  | { readonly kind: 'sequence' | 'choice'; readonly parts: readonly Part[] }
  | {
      readonly kind: 'repeat';
      readonly inner: Part;
      readonly least: number;
      readonly most: number;
      readonly lazy: boolean;
    };

/**
 * @param expression as `compileRe2` writes it: of JavaScript's syntax there is no more in it than is read here
 * @param always also for expressions that JavaScript's engine can be trusted with
 * @returns null for those
 * @throws PatternError for an expression that is too large
 */
export function compileProgram(expression: RegExp, always = false): Program | null {
  const reader = new Reader(expression.source);
  const whole = reader.whole();
  if (!always && isTame(whole)) return null;
  const { sets, groupCount, names } = reader;
  const writer = new Writer();
  writer.write({ kind: 'group', index: 0, inner: whole });
  writer.add(STEP.match);
  const { steps, x, y } = writer;
  return {
    steps: Uint8Array.from(steps),
    x: Int32Array.from(x),
    y: Int32Array.from(y),
    sets,
    groupCount,
    names,
  };
}

/**
 * Expressions with more ways than this to go on (loops, options, alternatives, an unknown begin) are not left to
 * JavaScript's engine, which tries every combination: with two of them these are at most the text's length squared.
 */
const CHOICES_MAX = 2;

function isTame(part: Part): boolean {
  const { count, nested } = choicesIn(part);
  return !nested && count + (isAnchored(part) ? 0 : 1) <= CHOICES_MAX;
}

/** How often there is more than one way to go on, and whether that happens within a loop. */
function choicesIn(part: Part): { readonly count: number; readonly nested: boolean } {
  switch (part.kind) {
    case 'group':
      return choicesIn(part.inner);
    case 'repeat': {
      const { count, nested } = choicesIn(part.inner);
      return {
        count: count + (part.least === part.most ? 0 : 1),
        nested: nested || (count > 0 && part.most > 1),
      };
    }
    case 'sequence':
    case 'choice': {
      const all = part.parts.map(choicesIn);
      const count = all.reduce((sum, one) => sum + one.count, part.kind === 'choice' ? 1 : 0);
      return { count, nested: all.some(({ nested }) => nested) };
    }
    default:
      return { count: 0, nested: false };
  }
}

/** Whether a match can only begin where the text does. */
function isAnchored(part: Part): boolean {
  if (part.kind === 'sequence') return part.parts[0] !== undefined && isAnchored(part.parts[0]);
  if (part.kind === 'group') return isAnchored(part.inner);
  return part.kind === 'assert' && part.condition === 0;
}

const atom = /\[(?:\\[^]|[^\]\\])*\]|\\(?:u\{[^}]*\}|[pP]\{[^}]*\}|x[\dA-Fa-f]{2}|[^])|[^]/uy;
const quantifier = /(?:([*+?])|\{(\d+)(,?)(\d*)\})(\??)/y;
const opening = /\((?:\?(?:<([^>=!]+)>|(-?i):|:))?/y;

class Reader {
  readonly sets: CharacterSet[] = [];
  readonly names = new Map<string, number>();
  groupCount = 0;
  readonly #known = new Map<string, number>();
  readonly #source: string;
  #at = 0;
  #ignoreCase = false;

  constructor(source: string) {
    this.#source = source;
  }

  whole(): Part {
    // An empty expression has a source of its own.
    const part =
      this.#source === '(?:)' ? { kind: 'sequence' as const, parts: [] } : this.#choice();
    if (this.#at < this.#source.length && this.#source !== '(?:)') this.#broken();
    return part;
  }

  #broken(): never {
    throw new Error(`an expression that re2.ts did not write: ${this.#source} at ${this.#at}`);
  }

  #choice(): Part {
    const parts = [this.#sequence()];
    while (this.#source[this.#at] === '|') {
      this.#at++;
      parts.push(this.#sequence());
    }
    return parts.length === 1 ? parts[0]! : { kind: 'choice', parts };
  }

  #sequence(): Part {
    const parts: Part[] = [];
    while (
      this.#at < this.#source.length &&
      this.#source[this.#at] !== '|' &&
      this.#source[this.#at] !== ')'
    ) {
      parts.push(this.#repeated(this.#single()));
    }
    return parts.length === 1 ? parts[0]! : { kind: 'sequence', parts };
  }

  #repeated(inner: Part): Part {
    quantifier.lastIndex = this.#at;
    const found = quantifier.exec(this.#source);
    if (found === null) return inner;
    this.#at += found[0].length;
    const [, sign, low, comma, high, lazy] = found;
    const least = sign === undefined ? Number(low) : sign === '+' ? 1 : 0;
    const most =
      sign === undefined
        ? comma === ''
          ? least
          : high === ''
            ? Infinity
            : Number(high)
        : sign === '?'
          ? 1
          : Infinity;
    return { kind: 'repeat', inner, least, most, lazy: lazy === '?' };
  }

  #single(): Part {
    const source = this.#source;
    const condition = CONDITIONS.findIndex((text) => source.startsWith(text, this.#at));
    if (condition >= 0) {
      this.#at += CONDITIONS[condition]!.length;
      return { kind: 'assert', condition };
    }
    if (source[this.#at] === '(') return this.#group();
    atom.lastIndex = this.#at;
    const [text] = atom.exec(source) ?? this.#broken();
    this.#at += text.length;
    return { kind: 'set', set: this.#set(text) };
  }

  #group(): Part {
    opening.lastIndex = this.#at;
    const [text, name, flag] = opening.exec(this.#source) ?? this.#broken();
    this.#at += text.length;
    const index = text === '(' || name !== undefined ? ++this.groupCount : 0;
    if (name !== undefined) this.names.set(name, index);
    const outer = this.#ignoreCase;
    if (flag !== undefined) this.#ignoreCase = flag === 'i';
    const inner = this.#choice();
    this.#ignoreCase = outer;
    if (this.#source[this.#at] !== ')') this.#broken();
    this.#at++;
    return index === 0 ? inner : { kind: 'group', index, inner };
  }

  #set(source: string): number {
    const key = `${this.#ignoreCase ? 'i' : ''}${source}`;
    let set = this.#known.get(key);
    if (set === undefined) {
      set = this.sets.push(new CharacterSet(source, this.#ignoreCase)) - 1;
      this.#known.set(key, set);
    }
    return set;
  }
}

class Writer {
  readonly steps: number[] = [];
  readonly x: number[] = [];
  readonly y: number[] = [];

  /** @returns where the instruction stands */
  add(step: number, x = 0, y = 0): number {
    if (this.steps.length >= STEPS_MAX)
      throw new PatternError('error parsing regexp: expression too large');
    this.x.push(x);
    this.y.push(y);
    return this.steps.push(step) - 1;
  }

  write(part: Part): void {
    switch (part.kind) {
      case 'set':
        this.add(STEP.set, part.set);
        return;
      case 'assert':
        this.add(STEP.assert, part.condition);
        return;
      case 'group':
        this.add(STEP.mark, 2 * part.index);
        this.write(part.inner);
        this.add(STEP.mark, 2 * part.index + 1);
        return;
      case 'sequence':
        for (const one of part.parts) this.write(one);
        return;
      case 'choice':
        return this.#choice(part.parts);
      case 'repeat':
        return this.#repeat(part.inner, part.least, part.most, part.lazy);
    }
  }

  #choice(parts: readonly Part[]): void {
    const ends: number[] = [];
    parts.forEach((part, index) => {
      if (index === parts.length - 1) return this.write(part);
      const fork = this.add(STEP.fork);
      this.x[fork] = fork + 1;
      this.write(part);
      ends.push(this.add(STEP.jump));
      this.y[fork] = this.steps.length;
    });
    for (const end of ends) this.x[end] = this.steps.length;
  }

  #repeat(inner: Part, least: number, most: number, lazy: boolean): void {
    for (let round = 0; round < least; round++) this.write(inner);
    const forks: number[] = [];
    if (most === Infinity) {
      const fork = this.add(STEP.fork);
      forks.push(fork);
      this.write(inner);
      this.add(STEP.jump, fork);
    }
    for (let round = least; round < most && most !== Infinity; round++) {
      forks.push(this.add(STEP.fork));
      this.write(inner);
    }
    const end = this.steps.length;
    for (const fork of forks) {
      this.x[fork] = lazy ? end : fork + 1;
      this.y[fork] = lazy ? fork + 1 : end;
    }
  }
}
