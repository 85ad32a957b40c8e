/**
 * The options of a verb, as one table. The parser (`option-parse.ts`), `--help` and the manual
 * (`option-help.ts`) and the completion of shells (`complete.ts`) read it, so an option is written
 * down once.
 */

/** The value of an option: its parser, its placeholder in help, and its completions. */
export interface OptionValue<T = unknown> {
  /** Stands for the value in help: `FILE`, `N`, `IP,…`. */
  readonly placeholder: string;
  /** `name` is the option as it was spelled. Throws a `Problem` with the code `usage`. */
  read(text: string, name: string): T;
  readonly offers?: Offers;
}

/** Words for completion; a list offers them again after each comma. */
export interface Offers {
  readonly words?: readonly string[] | ((context: OfferContext) => Promise<readonly string[]>);
  /** Names of files. */
  readonly files?: boolean;
  /** The value is a list with commas: completion continues after each. */
  readonly list?: boolean;
}

/** The state of a command line during completion. */
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
  /** null: a switch without a value. */
  readonly value: OptionValue<T> | null;
  /**
   * `switch`: there or not. `maybe`: a switch that may have a value after `=`. `one`: the last
   * counts. `many`: all count.
   */
  readonly kind: 'switch' | 'maybe' | 'one' | 'many';
  /** One line. */
  readonly help: string;
  /** The heading in help. */
  readonly group: string;
  /**
   * Options or words (`cluster`) of which one is required; without them this option has no effect
   * and is wrong usage.
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

/** The values of a table: a boolean for a switch, null for an `one` that was not given. */
export type OptionValues<T extends OptionTable> = {
  readonly [K in keyof T]: T[K] extends Many<infer V>
    ? readonly V[]
    : T[K] extends One<infer V>
      ? V | null
      : boolean;
};

/** Syntax of the options: GNU (and dig), or Go's package `flag`, where one dash equals two. */
export type Style = 'gnu' | 'go';

/** The documentation of a verb, for help, manual and completion. */
export interface Usage {
  /** Behind the verb: `NAME [TYPE] [@SERVER]`. */
  readonly synopsis: string;
  /** About three command lines, without `ndots`, and their purpose. */
  readonly examples: readonly (readonly [words: string, what: string])[];
  readonly style: Style;
  readonly options: OptionTable;
  /** Groups whose options help lists by name only; the manual explains each. */
  readonly brief?: readonly string[];
  /** Further paragraphs of help. Those with indented lines are printed unchanged. */
  readonly notes: readonly string[];
  /** Completions of words that are not options. */
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
