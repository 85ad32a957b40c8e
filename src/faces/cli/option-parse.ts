/** Parses a command line according to an option table. */
import { nearest } from '../../server/base/problem.ts';
import type { Option, OptionTable, OptionValues, Style } from './option.ts';
import { listed, usage } from './option-values.ts';

export interface GivenOption {
  readonly key: string;
  /** Name as written. */
  readonly name: string;
  /** False for `+noNAME` and `--NAME=false`. */
  readonly on: boolean;
  /** The parsed value, or undefined if the option has none. */
  readonly value: unknown;
}

/**
 * Parses a command line into options and words.
 * @throws Problem (`usage`)
 */
export function parseOptions<T extends OptionTable>(
  table: T,
  words: readonly string[],
  style: Style = 'gnu',
): { readonly values: OptionValues<T>; readonly words: readonly string[] } {
  const values: Record<string, unknown> = {};
  for (const [key, { kind }] of Object.entries(table))
    values[key] = kind === 'many' ? [] : kind === 'one' ? null : false;
  const rest: string[] = [];
  for (const given of readOptions(table, words, style)) {
    if (typeof given === 'string') rest.push(given);
    else if (table[given.key]?.kind === 'many') (values[given.key] as unknown[]).push(given.value);
    else values[given.key] = table[given.key]?.kind === 'one' ? given.value : given.on;
  }
  refuseLonely(table, values as OptionValues<T>, rest);
  return { values: values as OptionValues<T>, words: rest };
}

/** Rejects options that only have an effect together with another one. */
function refuseLonely<T extends OptionTable>(
  table: T,
  values: OptionValues<T>,
  words: readonly string[],
): void {
  const given = Object.keys(table).filter((key) => firstGiven(table, values, [key]) !== null);
  const there = new Set([...words, ...given.flatMap((key) => table[key]?.names ?? [])]);
  for (const key of given) {
    const { names = [], beside } = table[key] ?? {};
    if (beside !== undefined && !beside.some((other) => there.has(other)))
      throw usage(`${names.at(-1)} needs ${listed(beside)}`);
  }
}

/**
 * The first of these options on the command line, as written, or null if there are none. Used to reject options that do
 * not apply.
 */
export function firstGiven<T extends OptionTable>(
  table: T,
  values: OptionValues<T>,
  keys: Iterable<keyof T & string>,
): string | null {
  for (const key of keys) {
    const value: unknown = values[key];
    const isGiven = Array.isArray(value) ? value.length > 0 : value !== null && value !== false;
    if (isGiven) return table[key]?.names.at(-1) ?? key;
  }
  return null;
}

/** The first option given that is not one of these, or null if there is none. */
export function firstBeside<T extends OptionTable>(
  table: T,
  values: OptionValues<T>,
  kept: readonly (keyof T & string)[],
): string | null {
  return firstGiven(
    table,
    values,
    Object.keys(table).filter((key) => !kept.includes(key)),
  );
}

/** Options and words in the order given, for commands where the order matters. */
export function readOptions(
  table: OptionTable,
  words: readonly string[],
  style: Style = 'gnu',
): Iterable<GivenOption | string> {
  const names = new Map<string, string>();
  for (const [key, option] of Object.entries(table))
    for (const name of option.names) names.set(name, key);
  return style === 'go' ? readGo(table, names, words) : readGnu(table, names, words);
}

type OptionNames = ReadonlyMap<string, string>;

/**
 * Go's syntax: one or two dashes, with the value after a space (`-x v`) or `=` (`-x=v`). The first word that is not a
 * flag ends the flags. Error messages use Go's wording.
 */
function* readGo(
  table: OptionTable,
  names: OptionNames,
  words: readonly string[],
): Generator<GivenOption | string> {
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? '';
    if (word === '--') return yield* words.slice(i + 1);
    const match = /^--?([^-=][^=]*)(?:=(.*))?$/s.exec(word);
    if (match === null) return yield* words.slice(i);
    const [, plain = '', inline] = match;
    const name = `-${plain}`;
    const key = names.get(name);
    const option = key === undefined ? undefined : table[key];
    if (key === undefined || option === undefined) {
      // Any single letter is similar to every other one.
      const meant = plain.length > 1 ? nearest(name, names.keys()) : null;
      const hint = meant === null ? '' : ` (did you mean ${meant}?)`;
      throw usage(`flag provided but not defined: ${name}${hint}`);
    }
    if (option.value === null) {
      yield { key, name, on: truth(inline, name), value: undefined };
      continue;
    }
    const text = inline ?? words[++i];
    if (text === undefined) throw usage(`flag needs an argument: ${name}`);
    yield { key, name, on: true, value: option.value.read(text, name) };
  }
}

/**
 * GNU syntax, `--name value`, `--name=value`, `-n value`, `-nvalue` or `-46`, and dig's `+[no]name[=value]`. The word
 * `--` ends the options.
 */
function* readGnu(
  table: OptionTable,
  names: OptionNames,
  words: readonly string[],
): Generator<GivenOption | string> {
  const digs = [...names.keys()].some((name) => name.startsWith('+'));
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? '';
    if (word === '--') return yield* words.slice(i + 1);
    if (digs && word.startsWith('+')) yield readDig(table, names, word);
    else if (!word.startsWith('-') || word === '-') yield word;
    else {
      for (const { key, name, inline } of spelled(table, names, word)) {
        const option = table[key] as Option;
        if (option.value === null) {
          yield { key, name, on: truth(inline, name), value: undefined };
          continue;
        }
        const text = inline ?? words[++i];
        if (text === undefined) throw usage(`${name} needs a value`);
        if (inline === undefined && names.has(text))
          throw usage(
            `${name} needs a value, and ${text} is an option`,
            `If this is the value, write ${name}=${text}`,
          );
        yield { key, name, on: true, value: option.value.read(text, name) };
      }
    }
  }
}

interface Spelled {
  readonly key: string;
  readonly name: string;
  readonly inline: string | undefined;
}

/** The options in a word, either just one or several letters after a dash. */
function spelled(table: OptionTable, names: OptionNames, word: string): readonly Spelled[] {
  const [long = '', inline] = word.split(/=(.*)/s);
  const key = names.get(long);
  if (key !== undefined) return [{ key, name: long, inline }];
  if (word.startsWith('--')) throw unknown(long, table, names);
  const name = word.slice(0, 2);
  const letter = names.get(name);
  if (letter === undefined) throw unknown(word.length > 2 ? word : name, table, names);
  if (table[letter]?.value !== null) return [{ key: letter, name, inline: word.slice(2) }];
  return [{ key: letter, name, inline: undefined }, ...spelled(table, names, `-${word.slice(2)}`)];
}

/** As in dig, any unambiguous prefix of a name will do. */
function readDig(table: OptionTable, names: OptionNames, word: string): GivenOption {
  const [whole = '', text] = word.split(/=(.*)/s);
  const lower = whole.toLowerCase();
  const find = (name: string): string | undefined => {
    const exact = names.get(name);
    if (exact !== undefined || name.length < 3) return exact;
    const keys = new Set(
      [...names].filter(([known]) => known.startsWith(name)).map(([, key]) => key),
    );
    return keys.size === 1 ? [...keys][0] : undefined;
  };
  const plain = find(lower);
  const key = plain ?? (lower.startsWith('+no') ? find(`+${lower.slice(3)}`) : undefined);
  if (key === undefined) throw unknown(whole, table, names);
  const { value, kind } = table[key] as Option;
  const on = plain !== undefined;
  if (value === null && text !== undefined) throw usage(`${whole} does not accept a value`);
  if (kind === 'one' && on && text === undefined)
    throw usage(`${whole} needs a value, as in ${whole}=${value?.placeholder ?? ''}`);
  return {
    key,
    name: whole,
    on,
    value: text === undefined || value === null ? undefined : value.read(text, whole),
  };
}

function unknown(name: string, table: OptionTable, names: OptionNames): Error {
  // Any single letter is similar to every other one.
  const meant = name.length > 2 ? (nearest(name, names.keys()) ?? described(name, table)) : null;
  return usage(`unknown option ${name}`, meant === null ? undefined : `Did you mean ${meant}?`);
}

/** Shorter words are in many descriptions. */
const DESCRIBING_LETTERS_MIN = 5;

/**
 * The option whose value or description is named by this word, as --client is by `resolver` and --output by `format`.
 * Null if there is not exactly one.
 */
function described(name: string, table: OptionTable): string | null {
  const word = name.replace(/^[-+]+/, '').toLowerCase();
  if (word.length < DESCRIBING_LETTERS_MIN) return null;
  const about = (isAbout: (words: readonly string[]) => boolean): readonly string[] =>
    Object.values(table)
      .filter(({ help, value }) =>
        isAbout(
          [value?.placeholder ?? '', ...help.split(/[^\w-]+/)].map((each) => each.toLowerCase()),
        ),
      )
      .map(({ names }) => names.at(-1)!);
  const first = about((words) =>
    words.slice(0, 2).some((each) => each === word || each === `${word}s`),
  );
  const found = first.length > 0 ? first : about((words) => words.includes(word));
  return found.length === 1 ? found[0]! : null;
}

function truth(text: string | undefined, name: string): boolean {
  if (text === undefined || /^(1|t|true)$/i.test(text)) return true;
  if (/^(0|f|false)$/i.test(text)) return false;
  throw usage(`invalid boolean value ${JSON.stringify(text)} for ${name}`);
}
