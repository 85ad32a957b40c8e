/**
 * The lines inside a directive's braces. A record of properties defines which words can start a line. Its keys name the
 * options and may include a unit (`lameduckMs: setting('lameduck', duration('DURATION'))`).
 */
import type { Place } from '../base/problem.ts';
import type { Advice } from './problems.ts';
import type { DirectiveLine } from './line.ts';
import { bindPositions, showPositions, takeZones } from './positions.ts';
import type { BoundPositions, Help, Positions } from './positions.ts';
import type { Token } from './corefile-tree.ts';
import type { Value } from './word-values.ts';

/** One kind of line inside a directive's braces, and the option that it provides. */
export interface PropertySchema<T> {
  /** The words that can start the line; `*` matches any word that belongs to no other property. */
  readonly words: readonly string[];
  /** Syntax of the whole line: `success CAPACITY [TTL] [MINTTL]`. */
  readonly show: string;
  readonly help: string;
  /** The default for the documentation, or empty if there is none. */
  readonly defaultText: string;
  /** For `*`, limits it to lines above the first one that starts with this word. */
  readonly above: string | null;
  /** True if workers do not need it, so that its lines are not sent to them. */
  readonly controlOnly: boolean;
  initial(): T;
  /** @param before the value from the lines above, or `initial()` for the first one */
  take(line: DirectiveLine, before: T): T;
}

/** The lines allowed inside braces, by option name. */
export type Properties = Readonly<Record<string, PropertySchema<unknown>>>;

/** The options provided by the lines inside braces. */
export type BoundProperties<P extends Properties> = {
  readonly [K in keyof P]: P[K] extends PropertySchema<infer T> ? T : never;
};

/** A word alone on its line; true if the line is present. */
export function flag(word: string, { help = '' }: Help = {}): PropertySchema<boolean> {
  return property(word, '', help, false, (line) => {
    line.end();
    return true;
  });
}

/**
 * Returns the same property, except that surplus words at the end of the line are ignored with a warning, because
 * CoreDNS ignores them.
 */
export function lax<T>(strict: PropertySchema<T>): PropertySchema<T> {
  return withTail(strict, 'unread');
}

/** Returns the same property, except that any words left on the line are read as the next property, as CoreDNS does. */
export function chained<T>(strict: PropertySchema<T>): PropertySchema<T> {
  return withTail(strict, 'next');
}

function withTail<T>(strict: PropertySchema<T>, tail: DirectiveLine['tail']): PropertySchema<T> {
  return {
    ...strict,
    take: (line, before) => {
      line.tail = tail;
      return strict.take(line, before);
    },
  };
}

/** A single value. If there are several lines, the last one counts. */
export function setting<T>(word: string, value: Value<T>, options?: Help): PropertySchema<T | null>;
export function setting<T>(
  word: string,
  value: Value<T>,
  options: Help & { readonly default: NoInfer<T> },
): PropertySchema<T>;
export function setting<T>(
  word: string,
  value: Value<T>,
  options: Help & { readonly default?: T } = {},
): PropertySchema<T | null> {
  const { help = '', default: fallback } = options;
  return {
    ...property<T | null>(word, value.show, help, fallback ?? null, (line) => {
      line.example = value.example ?? '';
      const found = line.read(value, line.take());
      line.end();
      return found;
    }),
    defaultText: fallback === undefined ? '' : value.print(fallback),
  };
}

/**
 * Several named values: `success CAPACITY [TTL]` → `{ capacity, ttlSeconds }`. If there are several lines, the last one
 * counts.
 */
export function fields<A extends Positions>(
  word: string,
  positions: A,
  options?: Help,
): PropertySchema<BoundPositions<A> | null>;
export function fields<A extends Positions>(
  word: string,
  positions: A,
  options: Help & { readonly default: NoInfer<BoundPositions<A>>; readonly defaultText?: string },
): PropertySchema<BoundPositions<A>>;
export function fields<A extends Positions>(
  word: string,
  positions: A,
  options: Help & { readonly default?: BoundPositions<A>; readonly defaultText?: string } = {},
): PropertySchema<BoundPositions<A> | null> {
  return {
    ...property<BoundPositions<A> | null>(
      word,
      showPositions(positions),
      options.help ?? '',
      options.default ?? null,
      (line) => bindPositions(positions, line),
    ),
    defaultText: options.defaultText ?? '',
  };
}

/** Like `fields`, except that every line counts. There is one object per line, in file order. */
export function each<A extends Positions>(
  word: string,
  positions: A,
  { help = '' }: Help = {},
): PropertySchema<readonly BoundPositions<A>[]> {
  return property(
    word,
    showPositions(positions),
    help,
    [] as readonly BoundPositions<A>[],
    (line, before) => longer(before, [bindPositions(positions, line)]),
  );
}

/**
 * Values of one kind, where several lines add up.
 * @param options `lastLineCounts`: a line replaces the ones before it
 */
export function list<T>(
  word: string,
  value: Value<T>,
  options: Help & {
    readonly min?: number;
    readonly max?: number;
    readonly lastLineCounts?: boolean;
  } = {},
): PropertySchema<readonly T[]> {
  const { min = 1, max = Infinity, lastLineCounts = false, help = '' } = options;
  const show = min === 0 ? `[${value.show}…]` : `${value.show}…`;
  return property(word, show, help, [] as readonly T[], (line, before) => {
    if (line.left < min || line.left > max) line.refuseCount();
    const values = line.readAll(value);
    return lastLineCounts ? inPlaceOf(line, before, values) : longer(before, values);
  });
}

/**
 * Zones, where a CIDR may stand for several, and several lines add up. Null if there is no such line.
 * @param options `isStrict`: a word that is not a zone is an error (for properties that CoreDNS does not have);
 * `lastLineCounts`: a line replaces the ones before it
 */
export function zoneList(
  word: string,
  options: Help & {
    readonly show?: string;
    readonly min?: number;
    readonly isStrict?: boolean;
    readonly lastLineCounts?: boolean;
  } = {},
): PropertySchema<readonly string[] | null> {
  const { show = 'ZONES', min = 1, isStrict = false, lastLineCounts = false, help = '' } = options;
  return property<readonly string[] | null>(
    word,
    min === 0 ? `[${show}…]` : `${show}…`,
    help,
    null,
    (line, before) => {
      if (line.left < min) line.refuseCount();
      const zones = takeZones(line, undefined, isStrict);
      const others = before ?? [];
      return lastLineCounts ? inPlaceOf(line, others, zones) : longer(others, zones);
    },
  );
}

/** Returns the values of a line that replaces the ones before it, with a warning. */
function inPlaceOf<T>(
  line: DirectiveLine,
  before: readonly T[],
  values: readonly T[],
): readonly T[] {
  if (before.length > 0) line.replacesOthers();
  return values;
}

/**
 * `fallthrough [ZONES…]`. Null means that it is absent, `['.']` covers every name, and anything else covers the names
 * in these zones.
 */
export function fallthrough(options: Help = {}): PropertySchema<readonly string[] | null> {
  const help =
    options.help ??
    'pass names that are not found to the next plugin; if ZONES are given, only names in these zones';
  return property<readonly string[] | null>('fallthrough', '[ZONES…]', help, null, (line) =>
    line.left === 0 ? ['.'] : someOrNone(takeZones(line)),
  );
}

function someOrNone(zones: readonly string[]): readonly string[] | null {
  return zones.length === 0 ? null : zones;
}

/** Rejects a line with a problem. The problem is at the line's first word unless a position is given. */
export type Refuse = (text: string, place?: Place, advice?: Advice) => never;

/**
 * Lines that the plugin parses itself, because values and positions cannot express their grammar. If there are several,
 * the last one counts.
 */
export function custom<T>(
  word: string,
  show: string,
  read: (words: readonly Token[], refuse: Refuse) => T,
  options?: Help & { readonly defaultText?: string },
): PropertySchema<T | null>;
export function custom<T>(
  word: string,
  show: string,
  read: (words: readonly Token[], refuse: Refuse) => T,
  options: Help & { readonly default: NoInfer<T>; readonly defaultText?: string },
): PropertySchema<T>;
export function custom<T>(
  word: string,
  show: string,
  read: (words: readonly Token[], refuse: Refuse) => T,
  options: Help & { readonly default?: T; readonly defaultText?: string } = {},
): PropertySchema<T | null> {
  return {
    ...property<T | null>(word, show, options.help ?? '', options.default ?? null, (line) =>
      read(line.takeAll(), (text, place, advice) => line.refuse(text, place, advice)),
    ),
    defaultText: options.defaultText ?? '',
  };
}

/**
 * Lines that become one `T` each, in file order. They start with different words, but their overall order matters
 * (`allow`, `block` …), or any word can start a line (`*`, inline lines in hosts).
 */
export function lines<T>(
  words: readonly string[] | '*',
  show: string,
  read: (name: Token, words: readonly Token[], refuse: Refuse) => T,
  options: Help & { readonly above?: string; readonly controlOnly?: boolean } = {},
): PropertySchema<readonly T[]> {
  const begin = words === '*' ? [show] : [`${words.join('|')} ${show}`];
  return {
    ...property(
      words === '*' ? '*' : words[0]!,
      show,
      options.help ?? '',
      [] as readonly T[],
      (line, before) =>
        longer(before, [
          read(line.name, line.takeAll(), (text, place, advice) =>
            line.refuse(text, place, advice),
          ),
        ]),
    ),
    words: words === '*' ? ['*'] : words,
    show: begin.join(' ').trimEnd(),
    above: options.above ?? null,
    controlOnly: options.controlOnly ?? false,
  };
}

/**
 * Lists that `longer` created and no other code has seen yet. Without this, each line would copy the ones before it,
 * which is gigabytes for twenty thousand lines of hosts.
 */
const growing = new WeakSet<readonly unknown[]>();

/** Returns the list with these items appended. A list that `longer` created is extended in place. */
function longer<T>(before: readonly T[], more: readonly T[]): readonly T[] {
  const list = growing.has(before) ? (before as T[]) : [...before];
  growing.add(list);
  for (const item of more) list.push(item);
  return list;
}

function property<T>(
  word: string,
  args: string,
  help: string,
  initial: T,
  take: PropertySchema<T>['take'],
): PropertySchema<T> {
  return {
    words: [word],
    show: args === '' ? word : `${word} ${args}`,
    help,
    defaultText: '',
    above: null,
    controlOnly: false,
    initial: () => initial,
    take,
  };
}
