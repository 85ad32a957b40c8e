import { nearest } from '../base/problem.ts';

/** Flags as Go's `flag` package has them: one or two dashes, `-x v` or `-x=v`, switches without a value. */
export type FlagTable = Readonly<
  Record<string, { readonly kind: 'text' | 'number' | 'switch'; readonly help: string }>
>;

type ValueOf<K> = K extends 'text' ? string : K extends 'number' ? number : boolean;

export type FlagValues<T extends FlagTable> = { -readonly [N in keyof T]?: ValueOf<T[N]['kind']> };

export interface ParsedFlags<T extends FlagTable> {
  readonly values: FlagValues<T>;
  /** Words after the flags. */
  readonly extra: readonly string[];
  /** What is wrong with the command line, or null. */
  readonly problem: string | null;
}

export function goFlags<T extends FlagTable>(table: T, words: readonly string[]): ParsedFlags<T> {
  const values: Record<string, string | number | boolean> = {};
  const result = (extra: readonly string[], problem: string | null): ParsedFlags<T> => ({
    values: values as FlagValues<T>,
    extra,
    problem,
  });
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!;
    if (word === '--') return result(words.slice(i + 1), null);
    const match = /^--?([^-=][^=]*)(?:=(.*))?$/s.exec(word);
    if (match === null) return result(words.slice(i), null);
    const [, name = '', inline] = match;
    const flag = Object.hasOwn(table, name) ? table[name] : undefined;
    if (flag === undefined) {
      const meant = nearest(name, Object.keys(table));
      const hint = meant === null ? '' : ` (did you mean -${meant}?)`;
      return result([], `flag provided but not defined: -${name}${hint}`);
    }
    if (flag.kind === 'switch') {
      if (inline !== undefined && !/^(1|t|true|0|f|false)$/i.test(inline)) {
        return result([], `invalid boolean value ${JSON.stringify(inline)} for -${name}`);
      }
      values[name] = inline === undefined || /^(1|t|true)$/i.test(inline);
      continue;
    }
    const value = inline ?? words[++i];
    if (value === undefined) return result([], `flag needs an argument: -${name}`);
    if (flag.kind === 'number' && !/^\d+$/.test(value)) {
      return result([], `invalid value ${JSON.stringify(value)} for flag -${name}: not a number`);
    }
    values[name] = flag.kind === 'number' ? Number(value) : value;
  }
  return result([], null);
}
