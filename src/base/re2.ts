/**
 * Go's regular expressions (RE2 syntax) as JavaScript ones that match the same texts. RE2 has no back references and no
 * look-around; what JavaScript reads differently (`.`, `$`, `\s`, `\z`, `[[:alpha:]]`, `(?i)` in the middle …) is rewritten.
 *
 * Matching is not bound to linear time as RE2's is: use it on short texts only.
 */

/** Why a text is no RE2 expression, in Go's words. */
export class PatternError extends Error {
  override readonly name = 'PatternError';
}

/** @throws PatternError */
export function compileRe2(pattern: string): RegExp {
  const source = new Translation(pattern).run();
  try {
    return new RegExp(source, 'u');
  } catch (error) {
    const { message } = error as Error;
    const reason = message.includes('out of order')
      ? 'invalid character class range'
      : message.replace(/^.*: /, '');
    throw wrong(`${reason}: \`${pattern}\``);
  }
}

function wrong(reason: string): PatternError {
  return new PatternError(`error parsing regexp: ${reason}`);
}

interface Flags {
  readonly i: boolean;
  readonly m: boolean;
  readonly s: boolean;
  readonly U: boolean;
}

interface Group {
  /** Flags outside, to go back to at its end. */
  readonly outer: Flags;
  /** Whether a wrapper `(?i:` or `(?-i:` is open inside this group. */
  wrapped: boolean;
}

const REPEAT_MAX = 1000;

const posix: Readonly<Record<string, string>> = {
  alnum: '0-9A-Za-z',
  alpha: 'A-Za-z',
  ascii: '\\x00-\\x7F',
  blank: '\\t ',
  cntrl: '\\x00-\\x1F\\x7F',
  digit: '0-9',
  graph: '!-~',
  lower: 'a-z',
  print: ' -~',
  punct: '!-\\/:-@\\[-`\\{-~',
  space: '\\t\\n\\v\\f\\r ',
  upper: 'A-Z',
  word: '0-9A-Za-z_',
  xdigit: '0-9A-Fa-f',
};

const controls: Readonly<Record<string, string>> = {
  a: '\\x07',
  f: '\\f',
  n: '\\n',
  r: '\\r',
  t: '\\t',
  v: '\\v',
};
const SPACE = '\\t\\n\\f\\r ';

class Translation {
  readonly #text: string;
  #at = 0;
  #out = '';
  #flags: Flags = { i: false, m: false, s: false, U: false };
  #groups: Group[] = [{ outer: this.#flags, wrapped: false }];
  /** Whether a repetition may follow. */
  #atom = false;

  constructor(text: string) {
    this.#text = text;
  }

  run(): string {
    while (this.#at < this.#text.length) this.#step();
    if (this.#groups.length > 1) throw wrong(`missing closing ): \`${this.#text}\``);
    this.#unwrap();
    return this.#out;
  }

  #step(): void {
    const char = String.fromCodePoint(this.#text.codePointAt(this.#at)!);
    switch (char) {
      case '(':
        return this.#open();
      case ')':
        return this.#close();
      case '|':
        return this.#alternative();
      case '[':
        return this.#class();
      case '\\':
        return this.#escape();
      case '*':
      case '+':
      case '?':
        return this.#repeat(char, char.length);
      case '{':
        return this.#braces();
      case '.':
        return this.#put(this.#flags.s ? '[^]' : '[^\\n]', 1);
      case '^':
        return this.#assert(this.#flags.m ? '(?<![^\\n])' : '(?<![^])', 1);
      case '$':
        return this.#assert(this.#flags.m ? '(?![^\\n])' : '(?![^])', 1);
      default:
        return this.#put(literal(char), char.length);
    }
  }

  #put(source: string, length: number): void {
    this.#out += source;
    this.#at += length;
    this.#atom = true;
  }

  #assert(source: string, length: number): void {
    // In a group of its own, since RE2 lets assertions be repeated.
    this.#put(`(?:${source})`, length);
  }

  #open(): void {
    const rest = this.#text.slice(this.#at);
    const named = /^\(\?P?<([^>]*)>/.exec(rest);
    if (named !== null && !/^\(\?<[=!]/.test(rest)) {
      if (!/^\w+$/.test(named[1]!)) throw wrong(`invalid named capture: \`${named[0]}\``);
      return this.#enter(`(?<${named[1]}>`, named[0].length);
    }
    if (!rest.startsWith('(?')) return this.#enter('(', 1);
    const flags = /^\(\?([imsU]*)(?:-([imsU]+))?([:)])/.exec(rest);
    if (flags === null || (flags[1] === '' && flags[2] === undefined && flags[3] === ')')) {
      throw wrong(`invalid or unsupported Perl syntax: \`${/^\(\?<?.?/.exec(rest)![0]}\``);
    }
    const [whole, on = '', off = '', end] = flags;
    const wanted = changed(this.#flags, on, off);
    if (end === ':') this.#enter('(?:', whole.length);
    else {
      this.#at += whole.length;
      this.#atom = false;
    }
    this.#unwrap();
    this.#flags = wanted;
    this.#wrap();
  }

  #enter(source: string, length: number): void {
    this.#out += source;
    this.#at += length;
    this.#atom = false;
    this.#groups.push({ outer: this.#flags, wrapped: false });
  }

  #close(): void {
    if (this.#groups.length === 1) throw wrong(`unexpected ): \`${this.#text}\``);
    this.#unwrap();
    this.#flags = this.#groups.pop()!.outer;
    this.#put(')', 1);
  }

  #alternative(): void {
    this.#unwrap();
    this.#out += '|';
    this.#at++;
    this.#atom = false;
    this.#wrap();
  }

  /** JavaScript can switch only whole groups to ignoring case. */
  #wrap(): void {
    const group = this.#groups.at(-1)!;
    if (this.#flags.i === group.outer.i) return;
    this.#out += this.#flags.i ? '(?i:' : '(?-i:';
    group.wrapped = true;
  }

  #unwrap(): void {
    const group = this.#groups.at(-1)!;
    if (group.wrapped) this.#out += ')';
    group.wrapped = false;
  }

  #repeat(source: string, length: number): void {
    const rest = this.#text.slice(this.#at + length);
    if (!this.#atom) throw wrong(`missing argument to repetition operator: \`${source}\``);
    this.#at += length;
    const lazy = rest.startsWith('?');
    if (lazy) this.#at++;
    this.#out += source + (lazy === this.#flags.U ? '' : '?');
    this.#atom = false;
    const next = /^(?:[*+?]|\{\d+(?:,\d*)?\})/.exec(this.#text.slice(this.#at));
    if (next !== null) {
      throw wrong(`invalid nested repetition operator: \`${source}${lazy ? '?' : ''}${next[0]}\``);
    }
  }

  #braces(): void {
    const found = /^\{(\d+)(?:(,)(\d*))?\}/.exec(this.#text.slice(this.#at));
    if (found === null) return this.#put('\\{', 1);
    const least = Number(found[1]);
    const most = found[3] === undefined || found[3] === '' ? least : Number(found[3]);
    if (least > REPEAT_MAX || most > REPEAT_MAX || most < least) {
      throw wrong(`invalid repeat count: \`${found[0]}\``);
    }
    this.#repeat(found[0], found[0].length);
  }

  #escape(): void {
    const rest = this.#text.slice(this.#at);
    if (rest.startsWith('\\Q')) {
      const end = rest.indexOf('\\E');
      const quoted = rest.slice(2, end < 0 ? undefined : end);
      for (const char of quoted) this.#out += literal(char);
      this.#at += end < 0 ? rest.length : end + 2;
      this.#atom ||= quoted !== '';
      return;
    }
    const assertion = (
      { A: '(?<![^])', z: '(?![^])', b: '\\b', B: '\\B' } as Readonly<Record<string, string>>
    )[rest[1] ?? ''];
    if (assertion !== undefined) return this.#assert(assertion, 2);
    const { source, length } = escapeAt(rest, false);
    this.#put(source, length);
  }

  #class(): void {
    let at = this.#at + 1;
    const text = this.#text;
    const negated = text[at] === '^';
    if (negated) at++;
    let parts = '';
    for (let first = true; first || text[at] !== ']'; first = false) {
      if (at >= text.length) throw wrong(`missing closing ]: \`${text.slice(this.#at)}\``);
      const named = /^\[:(\^?)(\w+):\]/.exec(text.slice(at));
      if (named !== null) {
        const set = posix[named[2]!];
        if (set === undefined) throw wrong(`invalid character class range: \`${named[0]}\``);
        parts += named[1] === '^' ? complement(set) : set;
        at += named[0].length;
        continue;
      }
      const low = classMember(text, at);
      at += low.length;
      parts += low.source;
      const isRange = text[at] === '-' && text[at + 1] !== ']' && at + 1 < text.length;
      if (isRange && low.single) {
        const high = classMember(text, at + 1);
        const range = text.slice(at - low.length, at + 1 + high.length);
        if (!high.single) throw wrong(`invalid character class range: \`${range}\``);
        parts += `-${high.source}`;
        at += 1 + high.length;
      }
    }
    this.#put(`[${negated ? '^' : ''}${parts}]`, at + 1 - this.#at);
  }
}

function changed(flags: Flags, on: string, off: string): Flags {
  const pick = (flag: keyof Flags): boolean =>
    (flags[flag] || on.includes(flag)) && !off.includes(flag);
  return { i: pick('i'), m: pick('m'), s: pick('s'), U: pick('U') };
}

/** Everything below U+110000 but a set of ASCII characters, as members of a class. */
function complement(set: string): string {
  const inside = new RegExp(`[${set}]`, 'u');
  let out = '';
  for (let code = 0; code < 128; code++) {
    if (!inside.test(String.fromCharCode(code))) out += `\\x${code.toString(16).padStart(2, '0')}`;
  }
  return `${out}\\u{80}-\\u{10FFFF}`;
}

interface Member {
  readonly source: string;
  readonly length: number;
  /** One character, which may begin or end a range. */
  readonly single: boolean;
}

function classMember(text: string, at: number): Member {
  const char = String.fromCodePoint(text.codePointAt(at)!);
  if (char !== '\\') return { source: literal(char, true), length: char.length, single: true };
  return escapeAt(text.slice(at), true);
}

/** One escape at the start of `text`. */
function escapeAt(text: string, inClass: boolean): Member {
  const char = text[1];
  if (char === undefined) throw wrong('trailing backslash at end of expression: ``');
  const code = /^\\(?:x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]+)\}|(0[0-7]{0,2}|[1-7][0-7]{1,2}))/.exec(
    text,
  );
  if (code !== null) {
    const value =
      code[3] === undefined
        ? Number.parseInt(code[1] ?? code[2]!, 16)
        : Number.parseInt(code[3], 8);
    if (value > 0x10ffff) throw wrong(`invalid escape sequence: \`${code[0]}\``);
    return { source: `\\u{${value.toString(16)}}`, length: code[0].length, single: true };
  }
  const category = /^\\([pP])(?:\{(\^?)(\w+)\}|(\w))/.exec(text);
  if (category !== null) {
    const [whole, letter, caret = '', long, short] = category;
    const name = long ?? short!;
    const negated = (letter === 'P') !== (caret === '^');
    const property = name.length <= 2 ? name : `Script=${name}`;
    const source =
      name === 'Any' ? (negated ? '[]' : '[^]') : `\\${negated ? 'P' : 'p'}{${property}}`;
    if (!isProperty(source)) throw wrong(`invalid character class range: \`${whole}\``);
    return { source, length: whole.length, single: false };
  }
  if (char === 's') return { source: inClass ? SPACE : `[${SPACE}]`, length: 2, single: false };
  if (char === 'S')
    return { source: inClass ? complement(SPACE) : `[^${SPACE}]`, length: 2, single: false };
  if ('dDwW'.includes(char)) return { source: `\\${char}`, length: 2, single: false };
  const control = controls[char];
  if (control !== undefined) return { source: control, length: 2, single: true };
  if (/[!-/:-@[-`{-~]/.test(char))
    return { source: literal(char, inClass), length: 2, single: true };
  throw wrong(`invalid escape sequence: \`\\${char}\``);
}

function isProperty(source: string): boolean {
  try {
    return new RegExp(source, 'u') instanceof RegExp;
  } catch {
    return false;
  }
}

function literal(char: string, inClass = false): string {
  const special = inClass ? /[\\\]^[-]/ : /[\\^$.*+?()[\]{}|/]/;
  return special.test(char) ? `\\${char}` : char;
}
