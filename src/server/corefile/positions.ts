/**
 * The positions of words on a line, which can be required or optional, lists, or the last word. A directive's arguments
 * and a property's are records of positions. Their keys name the options, and their order is the order on the line.
 */
import { parseDuration } from '../base/duration.ts';
import type { DirectiveLine } from './line.ts';
import { Wrong } from './word-values.ts';
import type { Value } from './word-values.ts';
import { expandZone } from './zones.ts';

/** A position on a line, and the option it provides. */
export interface Position<T> {
  readonly show: string;
  readonly help: string;
  /** The default for the documentation, or empty if there is none. */
  readonly defaultText: string;
  /** True if it is parsed before the others, because it is at the end of the line. */
  readonly early: boolean;
  take(line: DirectiveLine): T;
}

/** The positions on a line by option name, in the order in which they appear. */
export type Positions = Readonly<Record<string, Position<unknown>>>;

/** The options provided by a line's positions. */
export type BoundPositions<A extends Positions> = {
  readonly [K in keyof A]: A[K] extends Position<infer T> ? T : never;
};

/** The description for the plugin's page, in lower case and without a full stop. */
export interface Help {
  readonly help?: string;
}

/** A required word. */
export function required<T>(value: Value<T>, { help = '' }: Help = {}): Position<T> {
  return position(value.show, help, (line) => line.read(value, line.take()));
}

/** An optional word, which must be valid if it is present. */
export function optional<T>(value: Value<T>, options?: Help): Position<T | null>;
export function optional<T>(
  value: Value<T>,
  options: Help & { readonly default: NoInfer<T> },
): Position<T>;
export function optional<T>(
  value: Value<T>,
  options: Help & { readonly default?: T } = {},
): Position<T | null> {
  return {
    ...position(`[${value.show}]`, options.help ?? '', (line): T | null =>
      line.left === 0 ? (options.default ?? null) : line.read(value, line.take()),
    ),
    defaultText: options.default === undefined ? '' : value.print(options.default),
  };
}

/**
 * An optional word that is consumed only if it matches the kind of value. Any other word is left for the next position.
 * In `cache [TTL] [ZONES…]`, a leading number is the TTL, and a name is a zone. A number that is out of range is
 * rejected.
 */
export function leading<T>(value: Value<T>, options?: Help): Position<T | null>;
export function leading<T>(
  value: Value<T>,
  options: Help & { readonly default: NoInfer<T> },
): Position<T>;
export function leading<T>(
  value: Value<T>,
  options: Help & { readonly default?: T } = {},
): Position<T | null> {
  return {
    ...position(`[${value.show}]`, options.help ?? '', (line): T | null => {
      const next = line.peek();
      if (next === null) return options.default ?? null;
      const found = value.read(next);
      if (found instanceof Wrong && found.form) return options.default ?? null;
      return line.read(value, line.take());
    }),
    defaultText: options.default === undefined ? '' : value.print(options.default),
  };
}

/**
 * The last word on the line, which is required: `autopath [ZONES…] RESOLV_CONF`. `missing` is the message for a line
 * without words.
 */
export function last<T>(
  value: Value<T>,
  { help = '', missing = null }: Help & { readonly missing?: string | null } = {},
): Position<T> {
  return {
    ...position(value.show, help, (line) => {
      if (line.left === 0 && missing !== null) line.refuse(missing);
      return line.read(value, line.takeLast());
    }),
    early: true,
  };
}

/** All remaining words. */
export function rest<T>(
  value: Value<T>,
  options: Help & { readonly min?: number; readonly max?: number } = {},
): Position<readonly T[]> {
  const { min = 0, max = Infinity, help = '' } = options;
  const show = min === 0 ? `[${value.show}…]` : `${value.show}…`;
  return position(show, help, (line) => {
    if (line.left < min || line.left > max) line.refuseCount();
    return line.readAll(value);
  });
}

/**
 * All remaining words as zones, where a CIDR may stand for several. If there are none, these are the zones in the
 * block's keys.
 */
export function zones(
  options: Help & {
    readonly show?: string;
    /**
     * If this is set, numbers and durations are errors, and the text explains where they belong. For directives that
     * CoreDNS does not have.
     */
    readonly noNumbers?: string;
  } = {},
): Position<readonly string[]> {
  const { show = 'ZONES', noNumbers, help = '' } = options;
  return {
    ...position(`[${show}…]`, help, (line) =>
      line.left === 0 ? line.binding.zones : takeZones(line, noNumbers),
    ),
    defaultText: "the server block's zones",
  };
}

/**
 * A single word as a zone: `forward FROM`. If a CIDR stands for several zones, only the first one is used, with a
 * warning.
 */
export function oneZone(show: string, { help = '' }: Help = {}): Position<string> {
  return position(show, help, (line) => {
    const word = line.take();
    const found = expandZone(word.text);
    if (found === null) return line.refuse(`unable to normalize '${word.text}'`, word.place);
    if (found.length > 1) {
      line.binding.warning(
        word.place,
        `Unsupported CIDR notation: '${word.text}' expands to multiple zones. Using only '${found[0]}'.`,
        { remedy: 'Write one line for each zone.' },
      );
    }
    return found[0]!;
  });
}

/** A position with a custom parser. */
export function position<T>(
  show: string,
  help: string,
  take: (line: DirectiveLine) => T,
): Position<T> {
  return { show, help, defaultText: '', early: false, take };
}

/** Binds a whole line and rejects surplus words. */
export function bindPositions<A extends Positions>(
  positions: A,
  line: DirectiveLine,
): BoundPositions<A> {
  const bound: Record<string, unknown> = {};
  const names = Object.keys(positions);
  for (const name of names) bound[name] = undefined;
  // Bind them in reverse order, so that the last position gets the last word.
  for (const name of names.toReversed()) {
    if (positions[name]!.early) bound[name] = positions[name]!.take(line);
  }
  for (const name of names) {
    if (!positions[name]!.early) bound[name] = positions[name]!.take(line);
  }
  line.end();
  return bound as BoundPositions<A>;
}

/** Returns the line's syntax: `FROM TO…`. */
export function showPositions(positions: Positions): string {
  return Object.values(positions)
    .map(({ show }) => show)
    .join(' ');
}

/** Matches names that begin with a digit and have no dot, which are not a CIDR and unlikely to be a zone. */
const looksLikeNumber = /^\d[^./:]*$/;

/**
 * Parses all remaining words as zones. A word that is not a zone is ignored with a warning, while CoreDNS ignores it
 * silently.
 * @param noNumbers if set, numbers and durations are errors, with this hint
 * @param isStrict true if a word that is not a zone is an error, for directives that CoreDNS does not have
 */
export function takeZones(
  line: DirectiveLine,
  noNumbers?: string,
  isStrict: boolean = noNumbers !== undefined,
): readonly string[] {
  const found: string[] = [];
  for (const word of line.takeAll()) {
    const isNumber = /^\d+$/.test(word.text);
    if (noNumbers !== undefined && (isNumber || parseDuration(word.text) !== null))
      line.refuse(`"${word.text}" is a ${isNumber ? 'number' : 'time'}, not a zone`, word.place, {
        hint: noNumbers,
      });
    const zones = expandZone(word.text);
    const hint = 'A zone is a domain name or a CIDR, such as example.org or 10.0.0.0/8.';
    if (zones !== null) {
      found.push(...zones);
      if (looksLikeNumber.test(word.text))
        line.binding.warning(
          word.place,
          `'${word.text}' is read as the zone ${zones[0]}, not as a number or a time`,
          {
            hint: 'CoreDNS does the same, and ignores names outside that zone.',
            remedy: `See the ${line.name.text} page for where numbers go; to serve the zone, write it with a trailing dot: ${zones[0]}`,
          },
        );
    } else if (isStrict) line.refuse(`'${word.text}' is not a zone`, word.place, { hint });
    else line.binding.warning(word.place, `'${word.text}' is not a zone and is ignored`, { hint });
  }
  return found;
}
