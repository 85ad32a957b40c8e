/**
 * The option table of a command. The parser (`option-parse.ts`), `--help` and the manual (`option-help.ts`) and shell
 * completion (`complete.ts`) all use it, so each option is defined once.
 */

/** The value of an option: its parser, its placeholder in help, and its completions. */
export interface OptionValue<T = unknown> {
  /** Placeholder in help: `FILE`, `N`, `IP,…`. */
  readonly placeholder: string;
  /**
   * Parses a value; `name` is the option as written.
   * @throws Problem (`usage`)
   */
  read(text: string, name: string): T;
  readonly offers?: Offers;
}

/** Suggested words; in a list, they are suggested again after each comma. */
export interface Offers {
  readonly words?: readonly string[] | ((context: OfferContext) => Promise<readonly string[]>);
  /** File names. */
  readonly files?: boolean;
  /** The value is a comma-separated list, so completion continues after each comma. */
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

/** An option. Names are written as `--client`, `-c`; `-conf` for Go flags; `+tcp` for dig, which implies `+notcp`. */
export interface Option<T = unknown> {
  readonly names: readonly string[];
  /** Null: a switch without a value. */
  readonly value: OptionValue<T> | null;
  /**
   * `switch`: has no value. `maybe`: a switch with an optional value after `=`. `one`: the last value counts. `many`:
   * all values count.
   */
  readonly kind: 'switch' | 'maybe' | 'one' | 'many';
  /** A single line. */
  readonly help: string;
  /** Heading in help. */
  readonly group: string;
  /**
   * Options or words (`cluster`) of which at least one is required. Without them this option has no effect, so it is
   * rejected.
   */
  readonly beside?: readonly string[];
}

/** A command's options by key, in the order of the help text. */
export type OptionTable = Readonly<Record<string, Option>>;

/** An option without a value. */
export interface Switch extends Option<never> {
  readonly kind: 'switch';
  readonly value: null;
}

/** An option with a value. If it is given several times, the last value counts. */
export interface One<T> extends Option<T> {
  readonly kind: 'one';
  readonly value: OptionValue<T>;
}

/** An option with a value that may be given several times; all values count. */
export interface Many<T> extends Option<T> {
  readonly kind: 'many';
  readonly value: OptionValue<T>;
}

/** The parsed values of a table: a boolean for a switch, null for a `one` that was not given. */
export type OptionValues<T extends OptionTable> = {
  readonly [K in keyof T]: T[K] extends Many<infer V>
    ? readonly V[]
    : T[K] extends One<infer V>
      ? V | null
      : boolean;
};

/** Option syntax: GNU (and dig), or that of Go's `flag` package, where one dash equals two. */
export type Style = 'gnu' | 'go';

/** The documentation of a command, for help, manual and completion. */
export interface Usage {
  /** Follows the command name: `NAME [TYPE] [@SERVER]`. */
  readonly synopsis: string;
  /** About three command lines, without `ndots`, with their purpose. */
  readonly examples: readonly (readonly [words: string, what: string])[];
  readonly style: Style;
  readonly options: OptionTable;
  /** Groups whose options help only lists by name. The manual explains them. */
  readonly brief?: readonly string[];
  /** Further paragraphs of help. Those with indented lines are printed unchanged. */
  readonly notes: readonly string[];
  /** Completions of words that are not options. */
  readonly words?: Offers;
}

/** Defines a switch. `names` are separated by spaces or commas: `-4`, `-c, --client`. */
export function flag(names: string, help: string): Switch {
  return { names: split(names), value: null, kind: 'switch', help, group: '' };
}

/** Defines an option with a value, of which the last one counts. `names` as for `flag`. */
export function one<T>(names: string, value: OptionValue<T>, help: string): One<T> {
  return { names: split(names), value, kind: 'one', help, group: '' };
}

/** Defines an option with a value that may be given several times. `names` as for `flag`. */
export function many<T>(names: string, value: OptionValue<T>, help: string): Many<T> {
  return { names: split(names), value, kind: 'many', help, group: '' };
}

/** Defines a switch with an optional value: `+cookie`, `+cookie=0102030405060708`. */
export function maybe<T>(names: string, value: OptionValue<T>, help: string): Option<T> {
  return { names: split(names), value, kind: 'maybe', help, group: '' };
}

/** Groups options under a heading. */
export function group<T extends OptionTable>(title: string, options: T): T {
  return Object.fromEntries(
    Object.entries(options).map(([key, option]) => [key, { ...option, group: title }]),
  ) as unknown as T;
}

/** Options that have an effect only together with one of `others`: `--live`, or a word of the command. */
export function beside<T extends OptionTable>(others: readonly string[], options: T): T {
  return Object.fromEntries(
    Object.entries(options).map(([key, option]) => [key, { ...option, beside: others }]),
  ) as unknown as T;
}

function split(names: string): string[] {
  return names.split(/[ ,]+/);
}
