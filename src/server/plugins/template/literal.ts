/** Numbers, strings and characters in templates. */
import { TemplateError, type Lexeme } from './lex.ts';
import type { GoValue } from './go-values.ts';

/**
 * Returns the value of a number, string or character in a template.
 * @throws TemplateError
 */
export function literalValue({ kind, text, at }: Lexeme): GoValue {
  if (kind === 'number') return numberValue(text, at);
  if (text.startsWith('`')) return text.slice(1, -1).replaceAll('\r', '');
  const value = unquote(text, at);
  if (kind === 'string') return value;
  if (Array.from(value).length !== 1)
    throw new TemplateError(`malformed character constant: ${text}`, at);
  return BigInt(value.codePointAt(0)!);
}

function numberValue(text: string, at: number): GoValue {
  const [, sign, digits] = /^([+-]?)(.*)$/.exec(text)!;
  const plain = digits!.replaceAll('_', '');
  const octal = /^0o?([0-7]+)$/i.exec(plain);
  if (octal !== null) return signed(sign!, BigInt(`0o${octal[1]}`));
  if (/^(?:0x[\da-f]+|0b[01]+|[1-9]\d*|0)$/i.test(plain)) return signed(sign!, BigInt(plain));
  if (/^(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i.test(plain)) {
    const value = Number(plain);
    // As in Go, 1e3 is an integer too, because any integral value is allowed where an integer is expected.
    return Number.isSafeInteger(value)
      ? signed(sign!, BigInt(value))
      : sign === '-'
        ? -value
        : value;
  }
  throw new TemplateError(`bad number syntax: ${JSON.stringify(text)}`, at);
}

function signed(sign: string, value: bigint): bigint {
  return sign === '-' ? -value : value;
}

const simple: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
  "'": "'",
  '"': '"',
};

const escape = /\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|([0-7]{3})|([^]))/g;

function unquote(text: string, at: number): string {
  return text
    .slice(1, -1)
    .replace(escape, (whole, hex, short, long, octal, char: string | undefined) => {
      if (char !== undefined) {
        const value = simple[char];
        if (value === undefined) throw new TemplateError(`invalid syntax: ${whole} in ${text}`, at);
        return value;
      }
      const code =
        octal === undefined ? Number.parseInt(hex ?? short ?? long, 16) : Number.parseInt(octal, 8);
      if (code > 0x10ffff) throw new TemplateError(`invalid syntax: ${whole} in ${text}`, at);
      return String.fromCodePoint(code);
    });
}
