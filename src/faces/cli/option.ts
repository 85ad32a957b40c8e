/**
 * A command's option table. It is used by the parser (`option-parse.ts`), `--help` and the manual (`option-help.ts`),
 * and shell completion (`complete.ts`), so each option is defined once.
 */

/** An option's value, defined by its parser, its placeholder in help, and its completions. */
export interface OptionValue<T = unknown> {
  /** Placeholder in help: `FILE`, `N`, `IP,…`. */
  readonly placeholder: string;
  /**
   * Parses a value, where `name` is the option as written.
   * @throws Problem (`usage`)
   */
  read(text: string, name: string): T;
  readonly offers?: Offers;
}

/** Suggested words. In a list, they are suggested again after each comma. */
export interface Offers {
  readonly words?: readonly string[] | ((context: OfferContext) => Promise<readonly string[]>);
  readonly files?: boolean;
  /** True for a comma-separated list, where completion continues after each comma. */
  readonly list?: boolean;
}

/** The state of a command line during completion. */
export interface OfferContext {
  /** The word so far. */
  readonly word: string;
  /** All previous words of the command. */
  readonly before: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * An option. Names are written as `--client` or `-c`, as `-conf` for Go flags, or as `+tcp` for dig, which implies
 * `+notcp`.
 */
export interface Option<T = unknown> {
  readonly names: readonly string[];
  /** Null: a switch without a value. */
  readonly value: OptionValue<T> | null;
  /**
   * A `switch` has no value, and a `maybe` is a switch with an optional value after `=`. For `one`, the last value
   * counts, and for `many`, all of them do.
   */
  readonly kind: 'switch' | 'maybe' | 'one' | 'many';
  /** A single line. */
  readonly help: string;
  /** Heading in help. */
  readonly group: string;
  /**
   * Options or words (`cluster`), at least one of which must be given. Otherwise this option would have no effect, so
   * it is rejected.
   */
  readonly beside?: readonly string[];
}

/** A command's options by key, in help text order. */
export type OptionTable = Readonly<Record<string, Option>>;

/** An option without a value. */
export interface Switch extends Option<never> {
  readonly kind: 'switch';
  readonly value: null;
}

/** An option with a value. If given several times, the last value counts. */
export interface One<T> extends Option<T> {
  readonly kind: 'one';
  readonly value: OptionValue<T>;
}

/** An option with a value that may be given several times, where all values count. */
export interface Many<T> extends Option<T> {
  readonly kind: 'many';
  readonly value: OptionValue<T>;
}

/** The parsed values for a table: booleans for switches, and null for each `one` that was not given. */
export type OptionValues<T extends OptionTable> = {
  readonly [K in keyof T]: T[K] extends Many<infer V>
    ? readonly V[]
    : T[K] extends One<infer V>
      ? V | null
      : boolean;
};

/** Option syntax, either GNU's (and dig's) or that of Go's `flag` package, where one dash is as good as two. */
export type Style = 'gnu' | 'go';

/** Documentation for a command, used for help, the manual and completion. */
export interface Usage {
  /** Follows the command name: `NAME [TYPE] [@SERVER]`. */
  readonly synopsis: string;
  /** About three command lines and what they are for, without `ndots`. */
  readonly examples: readonly (readonly [words: string, what: string])[];
  readonly style: Style;
  readonly options: OptionTable;
  /** Groups for which help lists only the option names. The manual explains them. */
  readonly brief?: readonly string[];
  /** More paragraphs for the help text. Those with indented lines are printed unchanged. */
  readonly notes: readonly string[];
  /** Completions of words that are not options. */
  readonly words?: Offers;
}

/** Defines a switch. `names` are separated by spaces or commas: `-4` or `-c, --client`. */
export function flag(names: string, help: string): Switch {
  return { names: split(names), value: null, kind: 'switch', help, group: '' };
}

/** Defines an option with a value. If given several times, the last one counts. `names` works as in `flag`. */
export function one<T>(names: string, value: OptionValue<T>, help: string): One<T> {
  return { names: split(names), value, kind: 'one', help, group: '' };
}

/** Defines an option with a value that may be given several times. `names` works as in `flag`. */
export function many<T>(names: string, value: OptionValue<T>, help: string): Many<T> {
  return { names: split(names), value, kind: 'many', help, group: '' };
}

/** Defines a switch with an optional value: `+cookie` or `+cookie=0102030405060708`. */
export function maybe<T>(names: string, value: OptionValue<T>, help: string): Option<T> {
  return { names: split(names), value, kind: 'maybe', help, group: '' };
}

export function group<T extends OptionTable>(title: string, options: T): T {
  return Object.fromEntries(
    Object.entries(options).map(([key, option]) => [key, { ...option, group: title }]),
  ) as unknown as T;
}

/** Options that only have an effect together with one of `others`, such as `--live` or a word of the command. */
export function beside<T extends OptionTable>(others: readonly string[], options: T): T {
  return Object.fromEntries(
    Object.entries(options).map(([key, option]) => [key, { ...option, beside: others }]),
  ) as unknown as T;
}

function split(names: string): string[] {
  return names.split(/[ ,]+/);
}
