/**
 * The possible meanings of a word in a Corefile. A `Value` parses a word and, if it does not match, reports the
 * expected form. Arguments and properties consist of values.
 */
import { parseDuration, printDuration } from '../base/duration.ts';
import { parseAddress, parseNet, printAddress, printHostPort } from '../base/ip.ts';
import type { Net } from '../base/ip.ts';
import { nearest } from '../base/problem.ts';
import type { Token } from './corefile-tree.ts';
import { absoluteName, isDomainName } from './zones.ts';

/** The meaning of one word. */
export interface Value<T> {
  /** Its form in the syntax: `TTL`, `udp|tcp`. */
  readonly show: string;
  /** A valid word, for hints. */
  readonly example?: string;
  read(word: Token): T | Wrong;
  /** Prints the value in Corefile syntax, for defaults in the documentation. */
  print(value: T): string;
}

/**
 * Explains why a word is invalid. `form` means that it is not even of this kind (`abc` for a number), so an optional
 * position may be skipped.
 */
export class Wrong {
  readonly text: string;
  readonly hint: string | null;
  readonly form: boolean;

  constructor(text: string, hint: string | null, form: boolean) {
    this.text = text;
    this.hint = hint;
    this.form = form;
  }
}

/** Rejects a word of the right kind. */
export function wrong(text: string, hint: string | null = null): Wrong {
  return new Wrong(text, hint, false);
}

/** Rejects a word of a different kind. */
export function wrongForm(text: string, hint: string | null = null): Wrong {
  return new Wrong(text, hint, true);
}

/** Creates a value from a parser. `read` returns either the value or a `wrong(…)`. */
export function value<T>(
  show: string,
  read: (word: Token) => T | Wrong,
  print: (value: T) => string = String,
): Value<T> {
  return { show, read, print };
}

/** Returns the value with CoreDNS's own error text, if CoreDNS has one. `reason` is the usual text. */
export function worded<T>(
  inner: Value<T>,
  text: (word: string, reason: string) => string,
): Value<T> {
  return {
    ...inner,
    read(word) {
      const found = inner.read(word);
      if (!(found instanceof Wrong)) return found;
      return new Wrong(text(word.text, found.text), found.hint, found.form);
    },
  };
}

/** The word as written. */
export function word(show: string): Value<string> {
  return value(show, (token) => token.text);
}

/** The word with its position, for plugins that parse it further and report where an error is. @public */
export function token(show: string): Value<Token> {
  return value(
    show,
    (found) => found,
    (found) => found.text,
  );
}

/** Inclusive bounds of a number, or undefined if there are none. */
export interface Range {
  readonly min?: number;
  readonly max?: number;
}

/** An integer. */
export function integer(
  show: string,
  options: Range & { readonly example?: number } = {},
): Value<number> {
  const { example = Math.max(1, options.min ?? 1) } = options;
  const parsed = value(show, ({ text }): number | Wrong => {
    if (!/^[+-]?\d+$/.test(text)) {
      return wrongForm(
        `strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`,
        `${show} is a whole number${within(options)}`,
      );
    }
    const number = Number(text);
    if (!Number.isSafeInteger(number)) {
      return wrong(
        `strconv.Atoi: parsing ${JSON.stringify(text)}: value out of range`,
        `${show} is a whole number${within(options)}`,
      );
    }
    return inRange(show, number, text, options);
  });
  return { ...parsed, example: String(example) };
}

/** Whole seconds, written without a unit (`ttl 30`). The option's name should be `…Seconds`. */
export const seconds: typeof integer = integer;

/** A number with a fraction. */
export function decimal(show: string, options: Range = {}): Value<number> {
  return value(show, ({ text }) => {
    if (!/^[+-]?(\d+(?:\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(text) || !Number.isFinite(Number(text))) {
      return wrongForm(
        `strconv.ParseFloat: parsing ${JSON.stringify(text)}: invalid syntax`,
        `${show} is a number${within(options)}`,
      );
    }
    return inRange(show, Number(text), text, options);
  });
}

/** `10%` → 10. */
export function percent(show: string, options: Range = {}): Value<number> {
  return value(
    show,
    ({ text }) => {
      const digits = /^(\d+)%$/.exec(text);
      if (digits === null) {
        return wrongForm(
          `last character of percentage should be \`%\`, but is: ${quoteLast(text)}`,
          `${show} is written like 10%`,
        );
      }
      return inRange(show, Number(digits[1]), text, options);
    },
    (amount) => `${amount}%`,
  );
}

function quoteLast(text: string): string {
  return JSON.stringify(text.slice(-1));
}

function inRange(show: string, number: number, text: string, options: Range): number | Wrong {
  const { min = -Infinity, max = Infinity } = options;
  if (number >= min && number <= max) return number;
  return wrong(`${show} must be${within(options)}: ${text}`, `${show} must be${within(options)}`);
}

function within({ min, max }: Range): string {
  if (min !== undefined && max !== undefined) return ` in range [${min}, ${max}]`;
  if (min !== undefined) return ` at least ${min}`;
  return max === undefined ? '' : ` at most ${max}`;
}

/** An amount of memory in bytes: `32MiB`, `64MB`, `1048576`. The option's name should be `…Bytes`. */
export function byteSize(
  show: string,
  { min, max }: { readonly min: number; readonly max: number },
): Value<number> {
  return value(
    show,
    ({ text }) => {
      const match = /^(\d+)(B|KB|MB|GB|KiB|MiB|GiB)?$/.exec(text);
      if (match === null) {
        return wrongForm(
          `not a size: ${JSON.stringify(text)}`,
          'Sizes are written like 32MiB or 64MB',
        );
      }
      const bytes = Number(match[1]) * unitBytes[match[2] ?? 'B']!;
      if (bytes >= min && bytes <= max) return bytes;
      return wrong(`${show} must be in range [${printSize(min)}, ${printSize(max)}]: ${text}`);
    },
    printSize,
  );
}

const unitBytes: Readonly<Record<string, number>> = {
  B: 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
};

/** Prints a size in the largest unit that it is a multiple of. */
function printSize(bytes: number): string {
  const unit = ['GiB', 'MiB', 'KiB'].find((name) => bytes % unitBytes[name]! === 0);
  return unit === undefined || bytes === 0 ? String(bytes) : `${bytes / unitBytes[unit]!}${unit}`;
}

/** The duration in hints, in milliseconds, if the bounds permit it. */
const EXAMPLE_MS = 5000;

/**
 * A duration in Go's syntax (`10s`, `1m30s`, `500ms`, `0`), converted to milliseconds. The option's name should be
 * `…Ms`.
 */
export function duration(
  show: string,
  options: { readonly minMs?: number; readonly maxMs?: number } = {},
): Value<number> {
  const { minMs = -Infinity, maxMs = Infinity } = options;
  const bounds = [
    ...(options.minMs === undefined ? [] : [`at least ${printDuration(minMs)}`]),
    ...(options.maxMs === undefined ? [] : [`at most ${printDuration(maxMs)}`]),
  ].join(' and ');
  const parsed = value<number>(
    show,
    ({ text }) => {
      const ms = parseDuration(text);
      if (ms === null || !Number.isFinite(ms)) {
        return wrongForm(goDurationError(text), durationHint(text));
      }
      if (ms < minMs || ms > maxMs) {
        return wrong(`${show} must be ${bounds}: ${text}`, `${show} must be ${bounds}`);
      }
      return ms;
    },
    printDuration,
  );
  return { ...parsed, example: printDuration(Math.min(Math.max(EXAMPLE_MS, minMs), maxMs)) };
}

/** Returns Go's error for a text that is not a duration. */
function goDurationError(text: string): string {
  const quoted = JSON.stringify(text);
  if (/^[+-]?(\d+(?:\.\d*)?|\.\d+)$/.test(text)) return `time: missing unit in duration ${quoted}`;
  const unit =
    /^[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h)(?=[\d.]))*(?:\d+(?:\.\d*)?|\.\d+)([^\d.]+)/.exec(
      text,
    );
  if (unit !== null) return `time: unknown unit ${JSON.stringify(unit[1])} in duration ${quoted}`;
  return `time: invalid duration ${quoted}`;
}

/** Maps units as people write them, without a final s, to Go's units. */
const unitWords: ReadonlyMap<string, string> = new Map([
  ...['hour', 'hr'].map((word) => [word, 'h'] as const),
  ...['minute', 'min'].map((word) => [word, 'm'] as const),
  ...['second', 'sec'].map((word) => [word, 's'] as const),
  ...['millisecond', 'msec', 'milli'].map((word) => [word, 'ms'] as const),
]);

function durationHint(text: string): string {
  if (/^\d+$/.test(text)) return `Did you mean '${text}s'?`;
  if (/^\d+d$/.test(text))
    return `There is no unit for days; did you mean '${24 * Number(text.slice(0, -1))}h'?`;
  const [, amount, unit] = /^(\d+) ?([a-z]+)$/i.exec(text) ?? [];
  const meant =
    unit === undefined ? undefined : unitWords.get(unit.toLowerCase().replace(/s$/, ''));
  if (meant !== undefined) return `Did you mean '${amount}${meant}'?`;
  return 'Durations are written like 10s, 1m30s or 500ms';
}

/** One of several fixed words. */
export function choice<const W extends string>(...words: readonly W[]): Value<W> {
  return value(words.join('|'), ({ text }) => {
    const found = words.find((candidate) => candidate === text);
    if (found !== undefined) return found;
    const meant = nearest(text, words);
    return wrongForm(
      `unknown value '${text}', expected ${words.join(', ')}`,
      meant === null ? `Expected ${words.join(', ')}` : `Did you mean '${meant}'?`,
    );
  });
}

/** `on` or `off`. */
export function onOff(): Value<boolean> {
  const words = choice('on', 'off');
  return value(
    words.show,
    (found) => {
      const text = words.read(found);
      return text instanceof Wrong ? text : text === 'on';
    },
    (on) => (on ? 'on' : 'off'),
  );
}

/** A domain name, converted to absolute lower case. For lists of zones (with CIDR) use `zones()` or `zoneList()`. */
export function domainName(show: string): Value<string> {
  return value(show, ({ text }) =>
    isDomainName(text)
      ? absoluteName(text).toLowerCase()
      : wrong(`not a valid domain name: ${text}`),
  );
}

/** An IPv4 or IPv6 address, as written. */
export function ip(show: string): Value<string> {
  return value(show, ({ text }) =>
    parseAddress(text) === null ? wrongForm(`not an IP address: ${JSON.stringify(text)}`) : text,
  );
}

/** A CIDR, or a single address. */
export function net(show: string): Value<Net> {
  return value(
    show,
    ({ text }) =>
      parseNet(text) ??
      wrongForm(`invalid CIDR address: ${text}`, 'Write a prefix like 10.0.0.0/8 or 2001:db8::/32'),
    (found) => `${printAddress(found.bytes)}/${found.bits}`,
  );
}

/** An address to listen on or connect to. */
export interface HostPort {
  /** Without brackets; empty means all addresses of the machine. */
  readonly host: string;
  readonly port: number;
}

/** `host:port`, `:port` or `[v6]:port`. The port is optional if there is a default. */
export function hostPort(show: string, options: { readonly port?: number } = {}): Value<HostPort> {
  return value(
    show,
    ({ text }) => {
      const refuse = (why: string): Wrong => wrongForm(`address ${text}: ${why}`);
      const parts = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::(\d*))?$/.exec(text);
      if (parts === null) {
        return refuse(
          text.includes('[') ? 'missing port in address' : 'too many colons in address',
        );
      }
      const host = parts[1] ?? parts[2] ?? '';
      if (parts[3] === undefined && options.port === undefined) {
        return refuse('missing port in address');
      }
      // `localhost:` has an empty port, which means either the default or one that the system chooses.
      const port = Number(parts[3] || (options.port ?? 0));
      return port > 65535 ? refuse('invalid port') : { host, port };
    },
    ({ host, port }) => printHostPort(host, port),
  );
}
