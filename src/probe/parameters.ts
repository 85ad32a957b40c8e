/** What checks take in YAML: how each value is read, and what stands for it where it is absent. */
import { parseAddress, printAddress } from '../base/ip.ts';
import { parseDuration } from '../base/duration.ts';
import { nearest } from '../base/problem.ts';
import { typeNumber } from '../wire/iana.ts';
import { parseName } from '../wire/name.ts';

/** One parameter. */
export interface Parameter<T> {
  /** One line. */
  readonly help: string;
  /** Stands for the value in help. */
  readonly placeholder: string;
  /** What is taken where it is absent; undefined: it must be there. */
  readonly fallback: T | undefined;
  /** @throws BadValue */
  read(value: unknown): T;
}

/** The parameters of a check by their keys in YAML. */
export type ParameterTable = Readonly<Record<string, Parameter<unknown>>>;

/** What has been read. */
export type ParameterValues<T extends ParameterTable> = {
  readonly [K in keyof T]: T[K] extends Parameter<infer V> ? V : never;
};

/** A value that is none; the message says what was expected. */
export class BadValue extends Error {}

/** How a kind of value is read. */
export interface ParameterKind<T> {
  readonly placeholder: string;
  read(value: unknown): T;
}

/** A parameter that must be there. */
export function required<T>({ placeholder, read }: ParameterKind<T>, help: string): Parameter<T> {
  return { help, placeholder, fallback: undefined, read };
}

/** A parameter that may be absent. */
export function optional<T>(
  { placeholder, read }: ParameterKind<T>,
  fallback: T,
  help: string,
): Parameter<T> {
  return { help, placeholder, fallback, read };
}

/** A domain name; read as absolute text with a final dot. */
export const domainName: ParameterKind<string> = {
  placeholder: 'NAME',
  read(value) {
    if (typeof value !== 'string' || value === '') throw new BadValue('a domain name');
    const name = value.endsWith('.') ? value : `${value}.`;
    try {
      parseName(name);
    } catch {
      throw new BadValue(`a domain name, not "${value}"`);
    }
    return name;
  },
};

/** A name as an application spells it: the search path applies where it has no final dot. */
export const spelledName: ParameterKind<string> = {
  placeholder: 'NAME',
  read(value) {
    domainName.read(value);
    return value as string;
  },
};

/** A type of records, read as its number. */
export const recordType: ParameterKind<number> = {
  placeholder: 'TYPE',
  read(value) {
    const type = typeof value === 'string' ? typeNumber(value.toUpperCase()) : null;
    if (type !== null) return type;
    const meant = nearest(String(value), ['A', 'AAAA', 'SRV', 'PTR', 'TXT', 'MX', 'NS', 'SOA']);
    throw new BadValue(`a type such as A${meant === null ? '' : ` (did you mean ${meant}?)`}`);
  },
};

/** An IP address, in its usual spelling. */
export const address: ParameterKind<string> = {
  placeholder: 'IP',
  read(value) {
    const bytes = typeof value === 'string' ? parseAddress(value) : null;
    if (bytes === null) throw new BadValue(`an IP address, not "${String(value)}"`);
    return printAddress(bytes);
  },
};

/** One of these words. */
export function word<const T extends string>(words: readonly T[]): ParameterKind<T> {
  return {
    placeholder: words.join('|'),
    read(value) {
      const found = words.find((each) => each === value);
      if (found !== undefined) return found;
      const meant = nearest(String(value), words);
      throw new BadValue(
        `one of ${words.join(', ')}${meant === null ? '' : ` (did you mean ${meant}?)`}`,
      );
    },
  };
}

/** Any text. */
export const anyText: ParameterKind<string> = {
  placeholder: 'TEXT',
  read(value) {
    if (typeof value === 'string' && value !== '') return value;
    throw new BadValue('a text');
  },
};

/** A whole number. */
export function whole(least: number, most: number): ParameterKind<number> {
  return {
    placeholder: 'N',
    read(value) {
      if (Number.isInteger(value) && Number(value) >= least && Number(value) <= most)
        return Number(value);
      throw new BadValue(`a whole number from ${least} to ${most}`);
    },
  };
}

/** A time such as `250ms` or `2s`, milliseconds. */
export function time(leastMs: number, mostMs: number): ParameterKind<number> {
  return {
    placeholder: 'TIME',
    read(value) {
      const ms = typeof value === 'string' ? parseDuration(value) : null;
      if (ms !== null && ms >= leastMs && ms <= mostMs) return ms;
      throw new BadValue('a time such as 250ms, 2s or 1m');
    },
  };
}

/** Several, or one without a list around it. */
export function listOf<T>(kind: ParameterKind<T>): ParameterKind<readonly T[]> {
  return {
    placeholder: `${kind.placeholder} or [${kind.placeholder}, …]`,
    read(value) {
      const list: readonly unknown[] = Array.isArray(value) ? value : [value];
      if (list.length === 0) throw new BadValue('at least one');
      if (list.length > LIST_MAX) throw new BadValue(`at most ${LIST_MAX}`);
      const read = list.map((each) => kind.read(each));
      // What stands there twice is looked at once.
      return [...new Map(read.map((each) => [JSON.stringify(each), each])).values()];
    },
  };
}

/** More of anything is another file. */
const LIST_MAX = 1000;
