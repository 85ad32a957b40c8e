/**
 * The options of a verb, as one table. The parser (`option-parse.ts`), `--help` and the manual
 * (`option-help.ts`) and the completion of shells (`complete.ts`) read it, so an option is written
 * down once.
 */

/** What an option may be given: how it is read, and what stands for it in help and completion. */
export interface OptionValue<T = unknown> {
  /** Stands for the value in help: `FILE`, `N`, `IP,…`. */
  readonly placeholder: string;
  /** `name` is the option as it was spelled. Throws a `Problem` with the code `usage`. */
  read(text: string, name: string): T;
  /** What completion offers. */
  readonly offers?: Offers;
}

/** Words for completion; those after a comma are offered again where a list is taken. */
export interface Offers {
  readonly words?: readonly string[] | ((context: OfferContext) => Promise<readonly string[]>);
  /** Names of files. */
  readonly files?: boolean;
  /** The value is a list with commas: completion goes on after each. */
  readonly list?: boolean;
}

/** What is known while a word is being completed. */
export interface OfferContext {
  /** The word so far. */
  readonly word: string;
  /** All words of the verb before it. */
  readonly before: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * One option. Its names: `--client`, `-c`; `-conf` as Go spells flags; `+tcp` as dig does, which
 * also knows `+notcp`.
 */
export interface Option<T = unknown> {
  readonly names: readonly string[];
  /** What it takes; null = nothing. */
  readonly value: OptionValue<T> | null;
  /**
   * `switch`: there or not. `maybe`: a switch that may have a value after `=`. `one`: the last
   * counts. `many`: all count.
   */
  readonly kind: 'switch' | 'maybe' | 'one' | 'many';
  /** One line. */
  readonly help: string;
  /** The heading that it stands under. */
  readonly group: string;
  /**
   * Without one of these it would be passed over, and so is wrong usage: other options of the
   * table as they are spelled, or a word of the verb (`cluster`). None: it counts by itself.
   */
  readonly beside?: readonly string[];
}

/** The options of a verb by their keys, in the order in which help lists them. */
export type OptionTable = Readonly<Record<string, Option>>;

/** An option without a value: it is there or not. */
export interface Switch extends Option<never> {
  readonly kind: 'switch';
  readonly value: null;
}

/** An option with a value; given twice, the last one counts. */
export interface One<T> extends Option<T> {
  readonly kind: 'one';
  readonly value: OptionValue<T>;
}

/** An option with a value that may be given several times; all of them count. */
export interface Many<T> extends Option<T> {
  readonly kind: 'many';
  readonly value: OptionValue<T>;
}

/**
 * What a table's options have been given: switches are true or false, `one` is null if it was not
 * given.
 */
export type OptionValues<T extends OptionTable> = {
  readonly [K in keyof T]: T[K] extends Many<infer V>
    ? readonly V[]
    : T[K] extends One<infer V>
      ? V | null
      : boolean;
};

/**
 * How the words of a verb are spelled: as GNU (and dig) do, or as Go's package `flag`, where one
 * dash is as good as two.
 */
export type Style = 'gnu' | 'go';

/** What a verb takes, for people: help, manual, completion. */
export interface Usage {
  /** Behind the verb: `NAME [TYPE] [@SERVER]`. */
  readonly synopsis: string;
  /** Three or so command lines, without `ndots`, and what they are good for. */
  readonly examples: readonly (readonly [words: string, what: string])[];
  readonly style: Style;
  readonly options: OptionTable;
  /** Groups whose options help lists by name only; the manual explains each. */
  readonly brief?: readonly string[];
  /**
   * What else help says, in paragraphs; lines of a paragraph that begin with blanks stay as they
   * are.
   */
  readonly notes: readonly string[];
  /** What completion offers besides options. */
  readonly words?: Offers;
}

/** A switch. `names` are divided by blanks or commas: `-4`, `-c, --client`. */
export function flag(names: string, help: string): Switch {
  return { names: split(names), value: null, kind: 'switch', help, group: '' };
}

/** An option with a value, of which the last one counts. `names` as for `flag`. */
export function one<T>(names: string, value: OptionValue<T>, help: string): One<T> {
  return { names: split(names), value, kind: 'one', help, group: '' };
}

/** An option with a value that may be given several times. `names` as for `flag`. */
export function many<T>(names: string, value: OptionValue<T>, help: string): Many<T> {
  return { names: split(names), value, kind: 'many', help, group: '' };
}

/** A switch that may have a value: `+cookie`, `+cookie=0102030405060708`. */
export function maybe<T>(names: string, value: OptionValue<T>, help: string): Option<T> {
  return { names: split(names), value, kind: 'maybe', help, group: '' };
}

/** Options under one heading. */
export function group<T extends OptionTable>(title: string, options: T): T {
  return Object.fromEntries(
    Object.entries(options).map(([key, option]) => [key, { ...option, group: title }]),
  ) as unknown as T;
}

/** Options that mean something only beside one of others: `--live`, or a word of the verb. */
export function beside<T extends OptionTable>(others: readonly string[], options: T): T {
  return Object.fromEntries(
    Object.entries(options).map(([key, option]) => [key, { ...option, beside: others }]),
  ) as unknown as T;
}

function split(names: string): string[] {
  return names.split(/[ ,]+/);
}
