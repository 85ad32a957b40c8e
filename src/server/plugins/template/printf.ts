/** Go's `printf`, for templates. */
import {
  isList,
  isMap,
  printFloat,
  printValue,
  twoDigits,
  typeOf,
  type GoValue,
} from './go-values.ts';

/** One `%…` in a format. */
interface Spec {
  readonly flags: string;
  readonly width: number;
  /** -1 if not given. */
  readonly precision: number;
  readonly verb: string;
}

/** Maximum width and length of printed values, since a record's text is short. */
const WIDTH_MAX = 1000;

const directive = /%([-+# 0]*)(\*|\d+)?(?:\.(\*|\d*))?([^]?)/gu;

/** Go's Sprintf. As in Go, errors are printed as part of the text: `%!d(string=x)`. */
export function printFormatted(format: string, values: readonly GoValue[]): string {
  let used = 0;
  const star = (word: string | undefined): number | null => {
    if (word !== '*') return word === undefined ? -1 : Math.min(Number(word), WIDTH_MAX);
    const value = values[used++];
    return typeof value === 'bigint'
      ? Number(value < -1000n ? -1000n : value > 1000n ? 1000n : value)
      : null;
  };
  const text = format.replace(
    directive,
    (_whole, flags: string, wide?: string, precise?: string, verb?: string) => {
      if (verb === '%') return '%';
      if (verb === undefined || verb === '') return '%!(NOVERB)';
      const width = star(wide);
      const precision = star(precise === '' ? '0' : precise);
      const complaint =
        (width === null ? '%!(BADWIDTH)' : '') + (precision === null ? '%!(BADPREC)' : '');
      if (used >= values.length) return `${complaint}%!${verb}(MISSING)`;
      const left = (width ?? 0) < -1;
      const spec = {
        flags: left ? `${flags}-` : flags,
        width: Math.abs(width === -1 ? 0 : (width ?? 0)),
        precision: precision ?? -1,
        verb,
      };
      return complaint + printOne(values[used++] ?? null, spec);
    },
  );
  if (used >= values.length) return text;
  const rest = values
    .slice(used)
    .map((value) => `${typeOf(value ?? null)}=${printValue(value ?? null)}`);
  return `${text}%!(EXTRA ${rest.join(', ')})`;
}

function printOne(value: GoValue, spec: Spec): string {
  const { verb } = spec;
  if (verb === 'T') return padded(value === null ? '<nil>' : typeOf(value), spec);
  if (value === null || value === undefined)
    return padded(verb === 'v' ? '<nil>' : `%!${verb}(<nil>)`, spec);
  if (isList(value)) return `[${value.map((item) => printOne(item, spec)).join(' ')}]`;
  if (isMap(value)) {
    const keys = [...value.keys()].toSorted();
    return `map[${keys.map((key) => `${printOne(key, spec)}:${printOne(value.get(key), spec)}`).join(' ')}]`;
  }
  const text = printScalar(value, spec);
  return text ?? `%!${verb}(${typeOf(value)}=${printValue(value)})`;
}

function printScalar(value: GoValue, spec: Spec): string | null {
  switch (typeof value) {
    case 'string':
      return printString(value, spec);
    case 'bigint':
      return printInteger(value, spec);
    case 'number':
      return printNumber(value, spec);
    case 'boolean':
      return spec.verb === 't' || spec.verb === 'v' ? padded(String(value), spec) : null;
    default:
      return spec.verb === 'v' || spec.verb === 's' ? padded(printValue(value), spec) : null;
  }
}

function printString(value: string, spec: Spec): string | null {
  const cut = spec.precision < 0 ? value : Array.from(value).slice(0, spec.precision).join('');
  switch (spec.verb) {
    case 'v':
    case 's':
      return padded(
        spec.verb === 'v' && spec.flags.includes('#') ? JSON.stringify(cut) : cut,
        spec,
      );
    case 'q':
      return padded(
        spec.flags.includes('#') && !cut.includes('`') ? `\`${cut}\`` : JSON.stringify(cut),
        spec,
      );
    case 'x':
    case 'X': {
      const separator = spec.flags.includes(' ') ? ' ' : '';
      const hex = Array.from(utf8.encode(value), (byte) => byte.toString(16).padStart(2, '0')).join(
        separator,
      );
      return padded(
        upper(`${spec.flags.includes('#') && hex !== '' ? '0x' : ''}${hex}`, spec.verb),
        spec,
      );
    }
    default:
      return null;
  }
}

const bases: Readonly<Record<string, number>> = { v: 10, d: 10, b: 2, o: 8, O: 8, x: 16, X: 16 };
const prefixes: Readonly<Record<string, string>> = { b: '0b', o: '0', x: '0x', X: '0X' };

function printInteger(value: bigint, spec: Spec): string | null {
  const { flags, verb, precision } = spec;
  if (verb === 'c')
    return padded(isCodePoint(value) ? String.fromCodePoint(Number(value)) : '\uFFFD', spec);
  if (verb === 'q') {
    const char = isCodePoint(value) ? String.fromCodePoint(Number(value)) : '\uFFFD';
    return padded(`'${char === "'" || char === '\\' ? `\\${char}` : char}'`, spec);
  }
  if (verb === 'U') return padded(`U+${value.toString(16).toUpperCase().padStart(4, '0')}`, spec);
  const base = bases[verb];
  if (base === undefined) return null;
  const size = value < 0n ? -value : value;
  const digits = upper(size.toString(base), verb).padStart(Math.max(0, precision), '0');
  const prefix = verb === 'O' ? '0o' : flags.includes('#') ? (prefixes[verb] ?? '') : '';
  return signed(
    value < 0n,
    prefix,
    precision === 0 && value === 0n ? '' : digits,
    spec,
    precision < 0,
  );
}

function isCodePoint(value: bigint): boolean {
  return value >= 0n && value <= 0x10ffffn && !(value >= 0xd800n && value <= 0xdfffn);
}

function printNumber(value: number, spec: Spec): string | null {
  const digits = floatDigits(Math.abs(value), spec);
  return digits === null
    ? null
    : signed(value < 0, '', upper(digits, spec.verb), spec, Number.isFinite(value));
}

function floatDigits(value: number, { verb, precision }: Spec): string | null {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : 'Inf';
  const places = precision < 0 ? 6 : Math.min(precision, 100);
  switch (verb) {
    case 'v':
    case 'g':
    case 'G':
      return precision < 0
        ? printFloat(value)
        : general(value, Math.min(Math.max(precision, 1), 100));
    case 'f':
    case 'F':
      return value.toFixed(places);
    case 'e':
    case 'E':
      return twoDigits(value.toExponential(places));
    default:
      return null;
  }
}

/** Formats `%.3g` with this many digits, but without trailing zeros. */
function general(value: number, digits: number): string {
  const exponent = value === 0 ? 0 : Number(value.toExponential(digits - 1).split('e')[1]);
  if (exponent < -4 || exponent >= digits) {
    const [head, tail] = value.toExponential(digits - 1).split('e') as [string, string];
    return twoDigits(
      `${head.includes('.') ? head.replace(/(?:\.|(?<![.0]))0+$/, '') : head}e${tail}`,
    );
  }
  const text = value.toFixed(digits - 1 - exponent);
  return text.includes('.') ? text.replace(/(?:\.|(?<![.0]))0+$/, '') : text;
}

/** @param zeros true if the flag `0` requests padding with zeros */
function signed(
  negative: boolean,
  prefix: string,
  digits: string,
  spec: Spec,
  zeros: boolean,
): string {
  const { flags, width } = spec;
  const sign = negative ? '-' : flags.includes('+') ? '+' : flags.includes(' ') ? ' ' : '';
  const filled =
    zeros && flags.includes('0') && !flags.includes('-')
      ? digits.padStart(Math.max(0, width - sign.length - prefix.length), '0')
      : digits;
  return padded(sign + prefix + filled, { ...spec, flags: flags.replaceAll('0', '') });
}

function upper(text: string, verb: string): string {
  return verb === 'X' || verb === 'E' || verb === 'G' ? text.toUpperCase() : text;
}

function padded(text: string, { flags, width }: Spec): string {
  const missing = width - Array.from(text).length;
  if (missing <= 0) return text;
  if (flags.includes('-')) return text + ' '.repeat(missing);
  return (flags.includes('0') ? '0' : ' ').repeat(missing) + text;
}

const utf8 = new TextEncoder();
