/**
 * Generates names that match a regular expression in a Corefile, a few for each expression and one for each
 * alternative. Unsupported syntax is ignored, so callers must check each name against the expression.
 */

/** More samples would reveal nothing new, and nested alternatives multiply. */
const SAMPLES_MAX = 12;
const DEPTH_MAX = 20;

/** Returns strings that probably match, or none if the syntax is not supported. */
export function samplesOf(pattern: string): readonly string[] {
  try {
    const reader = new PatternReader(pattern);
    const found = reader.alternatives(0);
    return reader.done ? [...new Set(found)].slice(0, SAMPLES_MAX) : [];
  } catch (error) {
    if (error instanceof NotUnderstood) return [];
    throw error;
  }
}

class NotUnderstood extends Error {}

const classes: Readonly<Record<string, string>> = {
  d: '7',
  w: 'w',
  s: ' ',
  D: 'x',
  W: '-',
  S: 'x',
};

class PatternReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get done(): boolean {
    return this.#at >= this.#text.length;
  }

  alternatives(depth: number): string[] {
    if (depth > DEPTH_MAX) throw new NotUnderstood();
    const found = this.#sequence(depth);
    while (this.#text[this.#at] === '|') {
      this.#at++;
      found.push(...this.#sequence(depth));
    }
    return found.slice(0, SAMPLES_MAX);
  }

  #sequence(depth: number): string[] {
    let found = [''];
    while (!this.done && this.#text[this.#at] !== '|' && this.#text[this.#at] !== ')') {
      const next = this.#repeated(this.#atom(depth));
      found = found.flatMap((head) => next.map((tail) => head + tail)).slice(0, SAMPLES_MAX);
    }
    return found;
  }

  #atom(depth: number): string[] {
    const mark = this.#text[this.#at++]!;
    switch (mark) {
      case '(': {
        const flags = /^\?(?:P?<\w+>|:|[imsU]+\)|[imsU]+:)/.exec(this.#text.slice(this.#at))?.[0];
        if (this.#text[this.#at] === '?' && flags === undefined) throw new NotUnderstood();
        this.#at += flags?.length ?? 0;
        if (flags?.endsWith(')') === true) return [''];
        const found = this.alternatives(depth + 1);
        if (this.#text[this.#at++] !== ')') throw new NotUnderstood();
        return found;
      }
      case '[':
        return [this.#oneOf()];
      case '.':
        return ['x'];
      case '^':
      case '$':
        return [''];
      case '\\': {
        const escaped = this.#text[this.#at++] ?? '';
        if (/[bBAzZ]/.test(escaped)) return [''];
        return [classes[escaped] ?? escaped];
      }
      case '*':
      case '+':
      case '?':
        throw new NotUnderstood();
      default:
        return [mark];
    }
  }

  /** Returns a character in the class, or one outside it if the class is negated. */
  #oneOf(): string {
    const negated = this.#text[this.#at] === '^';
    if (negated) this.#at++;
    const start = this.#at;
    // A bracket right at the start is literal.
    if (this.#text[this.#at] === ']') this.#at++;
    while (!this.done && this.#text[this.#at] !== ']')
      this.#at += this.#text[this.#at] === '\\' ? 2 : 1;
    const inner = this.#text.slice(start, this.#at);
    if (this.#text[this.#at++] !== ']') throw new NotUnderstood();
    if (negated)
      return (
        ['x', '7', '-', 'q'].find((one) => !inner.includes(one) && !inRange(one, inner)) ?? '_'
      );
    if (inner.startsWith('\\')) return classes[inner[1] ?? ''] ?? inner[1] ?? '';
    return inner[0] ?? '';
  }

  #repeated(atom: string[]): string[] {
    const rest = this.#text.slice(this.#at);
    const [whole = '', least] = /^(?:[*+?]|\{(\d{1,3})(?:,\d{0,3})?\})\??/.exec(rest) ?? [];
    this.#at += whole.length;
    if (whole === '') return atom;
    if (least !== undefined) {
      const times = Math.min(Number(least), 60);
      return atom.map((one) => one.repeat(times));
    }
    if (whole.startsWith('+')) return atom;
    return [...atom, ''];
  }
}

function inRange(one: string, inner: string): boolean {
  for (const [, from, to] of inner.matchAll(/(.)-(.)/g))
    if (one >= from! && one <= to!) return true;
  return false;
}
