/** Declares what a YAML file may contain. Each shape reads one value, and reports its faults and their positions. */
import { parseDuration } from '../../base/duration.ts';
import { parseAddress, printAddress } from '../../base/ip.ts';
import { isObject } from '../../base/json-object.ts';
import { didYouMean, Problem } from '../../base/problem.ts';
import type { DocumentPath, YamlDocument } from './yaml-document.ts';

export interface Mistake {
  readonly path: DocumentPath;
  readonly text: string;
  readonly hint: string | undefined;
}

/** Collects the errors in a document. Shapes that also collect other things use a subclass. */
export class YamlReading {
  readonly mistakes: Mistake[] = [];

  tell(path: DocumentPath, text: string, hint?: string): void {
    this.mistakes.push({ path, text, hint });
  }

  /** The error messages, each with its position in the file. */
  problems(
    document: YamlDocument,
    common: { readonly code: string; readonly remedy: string },
  ): readonly Problem[] {
    return this.mistakes.map(
      ({ path, text, hint }) => new Problem({ ...common, text, place: document.place(path), hint }),
    );
  }
}

export interface YamlShape<T> {
  /** Represents the value in descriptions of the syntax. */
  readonly placeholder: string;
  /**
   * Reads a value. All shapes for one file share one `reading`.
   * @returns an arbitrary value if the input is invalid, so check the errors first
   */
  read(value: unknown, path: DocumentPath, reading: YamlReading): T;
}

export interface YamlField<T> {
  readonly shape: YamlShape<T>;
  readonly help: string;
  /** The value used if the key is absent. If undefined, the key is required. */
  readonly fallback: T | undefined;
}

export type YamlFields = Readonly<Record<string, YamlField<unknown>>>;
/** The type of a mapping with these keys. */
export type ValuesOf<F extends YamlFields> = {
  readonly [K in keyof F]: F[K] extends YamlField<infer V> ? V : never;
};

/** The keys of a mapping with this type. */
export type FieldsOf<V> = { readonly [K in keyof V]: YamlField<V[K]> };

/** A required key. */
export function required<T>(shape: YamlShape<T>, help: string): YamlField<T> {
  return { shape, help, fallback: undefined };
}

/** An optional key. */
export function optional<T, D extends T | null>(
  shape: YamlShape<T>,
  fallback: D,
  help: string,
): YamlField<T | D> {
  return { shape: shape as YamlShape<T | D>, help, fallback };
}

/** A mapping with these keys and no others. */
export function mapping<F extends YamlFields>(fields: F, what: string): YamlShape<ValuesOf<F>> {
  return {
    placeholder: `{ ${Object.keys(fields).join(', ')} }`,
    read(value, path, reading) {
      const values: Record<string, unknown> = {};
      if (!isObject(value)) {
        reading.tell(path, `${what} is a mapping, not ${described(value)}`, keysOf(fields));
        return values as ValuesOf<F>;
      }
      for (const key of Object.keys(value)) {
        if (Object.hasOwn(fields, key)) continue;
        const hint = didYouMean(key, Object.keys(fields), keysOf(fields));
        reading.tell([...path, key], `${what} has no key "${key}"`, hint);
      }
      for (const [key, { shape, fallback, help }] of Object.entries(fields)) {
        const given = value[key];
        if (given !== undefined && given !== null)
          values[key] = shape.read(given, [...path, key], reading);
        else if (fallback !== undefined) values[key] = fallback;
        else reading.tell(path, `${what} needs "${key}"`, `${key}: ${shape.placeholder} (${help})`);
      }
      return values as ValuesOf<F>;
    },
  };
}

function keysOf(fields: YamlFields): string {
  return `Its keys: ${Object.keys(fields).join(', ')}`;
}

export function listOf<T>(shape: YamlShape<T>, most = 1000): YamlShape<readonly T[]> {
  return {
    placeholder: `[${shape.placeholder}, …]`,
    read(value, path, reading) {
      if (!Array.isArray(value)) {
        reading.tell(
          path,
          `a list is expected here, not ${described(value)}`,
          `Example: [${shape.placeholder}]`,
        );
        return [];
      }
      if (value.length > most) reading.tell(path, `${value.length} entries; at most ${most}`);
      return value
        .slice(0, most)
        .map((each: unknown, index) => shape.read(each, [...path, index], reading));
    },
  };
}

/** A list, or a single value that is not in a list. */
export function oneOrMore<T>(shape: YamlShape<T>): YamlShape<readonly T[]> {
  const list = listOf(shape);
  return {
    placeholder: `${shape.placeholder} or ${list.placeholder}`,
    read: (value, path, reading) =>
      Array.isArray(value) ? list.read(value, path, reading) : [shape.read(value, path, reading)],
  };
}

/** A mapping with arbitrary keys, whose values all have this shape. */
export function mapOf<T>(shape: YamlShape<T>): YamlShape<Readonly<Record<string, T>>> {
  return {
    placeholder: `{ KEY: ${shape.placeholder} }`,
    read(value, path, reading) {
      if (!isObject(value)) {
        reading.tell(path, `a mapping is expected here, not ${described(value)}`);
        return {};
      }
      return Object.fromEntries(
        Object.entries(value).map(([key, each]) => [
          key,
          shape.read(each, [...path, key], reading),
        ]),
      );
    },
  };
}

/**
 * A value for which `take` does not return null.
 * @param fallback used if the value is invalid
 */
export function simple<T>(
  placeholder: string,
  wanted: string,
  fallback: T,
  take: (value: unknown) => T | null,
): YamlShape<T> {
  return {
    placeholder,
    read(value, path, reading) {
      const taken = take(value);
      if (taken !== null) return taken;
      reading.tell(path, `"${keyOf(path)}" takes ${wanted}, not ${described(value)}`);
      return fallback;
    },
  };
}

export const text: YamlShape<string> = simple('TEXT', 'a text', '', (value) =>
  typeof value === 'string' && value !== '' ? value : null,
);

/** A string, or a number that is read as a string. */
export const scalar: YamlShape<string> = simple('VALUE', 'a text or a number', '', (value) =>
  ['string', 'number', 'boolean'].includes(typeof value) ? String(value) : null,
);

/** `true` or `false`. */
export const flag: YamlShape<boolean> = simple('true|false', 'true or false', false, (value) =>
  typeof value === 'boolean' ? value : null,
);

export function number(least: number, most: number): YamlShape<number> {
  return simple('N', `a number from ${least} to ${most}`, least, (value) =>
    typeof value === 'number' && value >= least && value <= most ? value : null,
  );
}

export function whole(least: number, most: number): YamlShape<number> {
  return simple('N', `a whole number from ${least} to ${most}`, least, (value) =>
    Number.isInteger(value) && Number(value) >= least && Number(value) <= most
      ? Number(value)
      : null,
  );
}

/** A duration such as `250ms` or `2s`, converted to milliseconds. */
export function time(leastMs = 0, mostMs = 600_000): YamlShape<number> {
  return simple('TIME', `a time such as 250ms or 2s, up to ${mostMs / 1000}s`, 0, (value) => {
    const ms = typeof value === 'string' ? parseDuration(value) : value === 0 ? 0 : null;
    return ms !== null && ms >= leastMs && ms <= mostMs ? ms : null;
  });
}

export const address: YamlShape<string> = simple('IP', 'an IP address', '', (value) => {
  const bytes = typeof value === 'string' ? parseAddress(value) : null;
  return bytes === null ? null : printAddress(bytes);
});

/** One of these words. */
export function word<const T extends string>(words: readonly T[]): YamlShape<T> {
  return {
    placeholder: words.join('|'),
    read(value, path, reading) {
      const found = words.find((each) => each === value);
      if (found !== undefined) return found;
      reading.tell(
        path,
        `"${keyOf(path)}" takes one of ${words.join(', ')}, not ${described(value)}`,
        typeof value === 'string' ? didYouMean(value, words) : undefined,
      );
      return words[0]!;
    },
  };
}

/** Any value; it is checked elsewhere. */
export const anything: YamlShape<unknown> = { placeholder: '…', read: (value) => value };

/** Returns the key that the path, or the list it leads into, belongs to. */
export function keyOf(path: DocumentPath): string {
  return String(path.findLast((step) => typeof step === 'string') ?? '');
}

/** Formats a value for messages, as its kind or as the value itself. */
export function described(value: unknown): string {
  if (value === null || value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'a mapping' : JSON.stringify(value);
}
