/** A word in an expression. */
export interface ExpressionWord {
  readonly kind: 'number' | 'string' | 'name' | 'sign' | 'end';
  /** The text, or a string's value. */
  readonly text: string;
  /** Number of characters before the word. */
  readonly at: number;
}

/** An invalid expression and the position of the error: `text (1:COLUMN)`, as in expr-lang. */
export class ExpressionError extends Error {
  override readonly name = 'ExpressionError';

  constructor(reason: string, at: number) {
    super(`${reason} (1:${at + 1})`);
  }
}

const blank = /(?:\s+|\/\/[^\n]*|\/\*[^]*?\*\/)+/y;
const number =
  /0x[\da-fA-F_]+|0b[01_]+|0o[0-7_]+|(?:\d[\d_]*(?:\.(?!\.)\d[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d+)?/y;
const name = /[A-Za-z_$][\w$]*/y;
const sign = /\*\*|\|\||&&|==|!=|<=|>=|\?\?|\?\.(?!\d)|\.\.|[-+*/%^<>!?:|()[\]{},#.;=]/y;
const escapes: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};

/** @throws ExpressionError */
export function readWords(text: string): readonly ExpressionWord[] {
  const words: ExpressionWord[] = [];
  let at = 0;
  const take = (pattern: RegExp): string | null => {
    pattern.lastIndex = at;
    return pattern.exec(text)?.[0] ?? null;
  };
  for (;;) {
    at += take(blank)?.length ?? 0;
    const char = text[at];
    if (char === undefined) break;
    if (char === '"' || char === "'" || char === '`') {
      const { value, end } = readString(text, at);
      words.push({ kind: 'string', text: value, at });
      at = end;
      continue;
    }
    const kinds = [
      ['number', number],
      ['name', name],
      ['sign', sign],
    ] as const;
    const found = kinds
      .map(([kind, pattern]) => ({ kind, taken: take(pattern) }))
      .find(({ taken }) => taken !== null);
    if (found === undefined)
      throw new ExpressionError(`unrecognized character: ${JSON.stringify(char)}`, at);
    words.push({ kind: found.kind, text: found.taken!, at });
    at += found.taken!.length;
  }
  words.push({ kind: 'end', text: '', at });
  return words;
}

function readString(text: string, from: number): { readonly value: string; readonly end: number } {
  const quote = text[from]!;
  let value = '';
  for (let at = from + 1; at < text.length; at++) {
    const char = text[at]!;
    if (char === quote) return { value, end: at + 1 };
    if (char !== '\\' || quote === '`') {
      value += char;
      continue;
    }
    const code = /^(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|([0-7]{3}))/.exec(
      text.slice(at + 1, at + 6),
    );
    if (code !== null) {
      const hex = code[1] ?? code[2];
      value += String.fromCharCode(
        hex === undefined ? Number.parseInt(code[3]!, 8) : Number.parseInt(hex, 16),
      );
      at += code[0].length;
      continue;
    }
    const next = text[++at] ?? '';
    if (escapes[next] === undefined && !'\\\'"`'.includes(next)) {
      throw new ExpressionError(`invalid char escape: \\${next}`, at - 1);
    }
    value += escapes[next] ?? next;
  }
  throw new ExpressionError('literal not terminated', from);
}
