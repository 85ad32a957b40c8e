/**
 * The syntax of a directive, declared once. The parser, the error messages, the type of the options, the Syntax section
 * of the plugin's page and the linter all use it.
 *
 * The parts: what a word can mean (word-values.ts), where words are on a line (positions.ts), the lines inside braces
 * (properties.ts). A complete example:
 *
 *     export const syntax = directive({
 *       name: 'ready',
 *       summary: 'readiness check over HTTP',
 *       repeat: 'once',
 *       args: { address: optional(hostPort('ADDRESS'), { default: { host: '', port: 8181 } }) },
 *       properties: {
 *         monitor: setting('monitor', choice('until-ready', 'continuously'), { default: 'until-ready' }),
 *       },
 *     });
 *     export type ReadyOptions = Options<typeof syntax>; // { address: HostPort; monitor: …; at: Place }
 */
import type { Place, Problem } from '../base/problem.ts';
import { meant, pluginProblem, pluginRemark } from './problems.ts';
import { DirectiveLine, LineRefusal } from './line.ts';
import type { Binding } from './line.ts';
import { bindPositions, showPositions } from './positions.ts';
import type { BoundPositions, Position, Positions } from './positions.ts';
import type { BoundProperties, Properties, PropertySchema } from './properties.ts';
import type { Directive, Property, Token } from './corefile-tree.ts';

/**
 * The effect of using the directive again in the same server block. With `once` it is an error, with `each` it is
 * another instance, and with `gather` one instance gets all of them. With `last` the last one counts, and with `merge`
 * the last one's arguments and the properties of all do. With `first`, later ones are not even parsed, as in some
 * CoreDNS plugins.
 */
export type Repeat = 'once' | 'each' | 'gather' | 'last' | 'merge' | 'first';

/**
 * The parts that CoreDNS ignores, which are words after the last argument, empty braces, or braces with any content.
 */
export type Unread = 'words' | 'braces' | 'lines';

/** The syntax of one directive, created by `directive`. */
export interface Syntax<
  A extends Positions = Positions,
  P extends Properties = Properties,
  R extends Repeat = Repeat,
> {
  readonly name: string;
  /** One line, lower case, no full stop. */
  readonly summary: string;
  readonly repeat: R;
  readonly args: A;
  readonly properties: P;
  /** Properties from older versions, which are ignored with a warning. The text says what replaces them. */
  readonly retired: Readonly<Record<string, string>>;
  /** Older names of the directive (`proxy` for `forward`). The text describes what has changed. */
  readonly formerly: Readonly<Record<string, string>>;
  /** The parts that are ignored with a warning, because CoreDNS ignores them. */
  readonly unread: readonly Unread[];
  /** Groups of mutually exclusive properties. */
  readonly exclusive: readonly (readonly string[])[];
  /** Checks the options as a whole. It is called only if every line was valid. */
  check?(options: OptionsOf<A, P, R>, at: Place): readonly Problem[];
  /** Warns about settings that work but are probably not intended. */
  warn?(options: OptionsOf<A, P, R>, at: Place): readonly Problem[];
}

/** The options from one use of the directive. `at` is the position of the directive's name. */
export type Occurrence<A extends Positions, P extends Properties> = BoundPositions<A> &
  BoundProperties<P> & { readonly at: Place };

/** The options of an instance, given the directive's arguments, properties and repetition. */
export type OptionsOf<
  A extends Positions,
  P extends Properties,
  R extends Repeat,
> = R extends 'gather' ? readonly Occurrence<A, P>[] : Occurrence<A, P>;

/** The options of a plugin instance, which come from one use or, for `gather`, are the list of all uses. */
export type Options<S extends Syntax> = OptionsOf<S['args'], S['properties'], S['repeat']>;

type Nothing = Readonly<Record<never, never>>;

/** Declares a directive; omitted parts are empty. */
export function directive<
  A extends Positions = Nothing,
  P extends Properties = Nothing,
  const R extends Repeat = 'once',
>(spec: {
  readonly name: string;
  readonly summary: string;
  readonly repeat: R;
  readonly args?: A;
  readonly properties?: P;
  readonly retired?: Readonly<Record<string, string>>;
  readonly formerly?: Readonly<Record<string, string>>;
  readonly unread?: readonly Unread[];
  readonly exclusive?: readonly (readonly string[])[];
  check?(options: OptionsOf<A, P, R>, at: Place): readonly Problem[];
  warn?(options: OptionsOf<A, P, R>, at: Place): readonly Problem[];
}): Syntax<A, P, R> {
  return {
    ...spec,
    args: spec.args ?? ({} as A),
    properties: spec.properties ?? ({} as P),
    retired: spec.retired ?? {},
    formerly: spec.formerly ?? {},
    unread: spec.unread ?? [],
    exclusive: spec.exclusive ?? [],
  };
}

/** The options from all uses of a directive in a server block. */
export interface BoundDirective<S extends Syntax> {
  /** One for each instance. Complete only if there are no problems. */
  readonly options: readonly Options<S>[];
  readonly problems: Problem[];
  readonly warnings: Problem[];
}

/** Binds all uses of a directive in a server block. `zones` are the zones in the block's keys. */
export function bindDirective<S extends Syntax>(
  syntax: S,
  directives: readonly Directive[],
  context: { readonly zones: readonly string[] },
): BoundDirective<S> {
  const problems: Problem[] = [];
  const warnings: Problem[] = [];
  const binding = bindingFor(syntax, context.zones, problems, warnings);
  const found: Occurrence<Positions, Properties>[] = [];
  directives.forEach((occurrence, index) => {
    if (syntax.repeat === 'once' && index > 0) {
      problems.push(onceProblem(syntax, occurrence, directives[0]!));
      return;
    }
    if (syntax.repeat === 'first' && index > 0) {
      warnings.push(notRead(syntax, occurrence, directives[0]!));
      return;
    }
    const { name, at } = occurrence;
    if (name !== syntax.name && Object.hasOwn(syntax.formerly, name)) {
      const text = `'${name}' is read as '${syntax.name}': ${syntax.formerly[name]}`;
      binding.warning(at.place, text, { code: 'directive-renamed' });
    }
    const before = problems.length;
    const said = syntax.repeat === 'merge' ? found.at(-1) : undefined;
    const bound = bindOccurrence(syntax, occurrence, binding, said);
    if (problems.length === before && bound !== null) found.push(bound);
  });
  const instances = instancesOf(syntax, found);
  for (const { options, at } of instances) {
    if (syntax.repeat === 'gather' && problems.length > 0) break;
    problems.push(...(syntax.check?.(options as never, at) ?? []));
    warnings.push(...(syntax.warn?.(options as never, at) ?? []));
  }
  return {
    options: instances.map(({ options }) => options) as readonly Options<S>[],
    problems,
    warnings,
  };
}

function instancesOf(
  syntax: Syntax,
  found: readonly Occurrence<Positions, Properties>[],
): readonly { options: unknown; at: Place }[] {
  if (found.length === 0) return [];
  if (syntax.repeat === 'gather') return [{ options: found, at: found[0]!.at }];
  const kept = syntax.repeat === 'each' ? found : [found.at(-1)!];
  return kept.map((options) => ({ options, at: options.at }));
}

function onceProblem(syntax: Syntax, again: Directive, first: Directive): Problem {
  const text = 'this plugin can only be used once per Server Block';
  return pluginRemark(syntax.name, again.at.place, text, {
    code: 'directive-repeated',
    hint: `It is already used at ${first.at.place.file}:${first.at.place.line}.`,
    remedy: 'Merge the two, or move one of them to another server block.',
  });
}

function notRead({ name }: Syntax, again: Directive, { at }: Directive): Problem {
  return pluginRemark(name, again.at.place, `a second '${name}' in a server block is ignored`, {
    code: 'directive-repeated',
    hint: `The directive that applies is at ${at.place.file}:${at.place.line}.`,
    remedy: 'Delete it, or move it to another server block.',
  });
}

/** @param said the options from an earlier use, which this one adds to */
function bindOccurrence(
  syntax: Syntax,
  { at, args, block: braces }: Directive,
  binding: Binding,
  said: BoundProperties<Properties> = {},
): Occurrence<Positions, Properties> | null {
  const none = Object.keys(syntax.properties).length + Object.keys(syntax.retired).length === 0;
  const block = none && isUnread(syntax, braces) ? passOver(at, binding) : braces;
  const line = new DirectiveLine(at, args, block, binding, formOf(syntax));
  if (syntax.unread.includes('words')) line.tail = 'unread';
  const bound = guarded(binding, () => {
    const positions = bindPositions(syntax.args, line);
    if (none && block !== null) line.refuseCount();
    return positions;
  });
  const properties = bindProperties(syntax, block ?? [], binding, said);
  exclude(syntax, block ?? [], binding);
  return bound === null ? null : { ...bound, ...properties, at: at.place };
}

function isUnread({ unread }: Syntax, block: readonly Property[] | null): boolean {
  if (block === null) return false;
  return unread.includes('lines') || (unread.includes('braces') && block.length === 0);
}

function passOver({ text, place }: Token, binding: Binding): null {
  binding.warning(place, `the braces of '${text}' are not read`, {
    code: 'words-not-read',
    remedy: 'Take them away.',
  });
  return null;
}

function bindingFor(
  syntax: Syntax,
  zones: readonly string[],
  problems: Problem[],
  warnings: Problem[],
): Binding {
  return {
    zones,
    problem: (place, text, advice) => {
      problems.push(pluginProblem(syntax.name, place, text, advice));
    },
    warning: (place, text, advice) => {
      warnings.push(
        pluginRemark(syntax.name, place, text, { code: 'directive-warning', ...advice }),
      );
    },
  };
}

function bindProperties(
  { properties, retired }: Syntax,
  lines: readonly Property[],
  binding: Binding,
  said: Readonly<Record<string, unknown>>,
): BoundProperties<Properties> {
  const bound: Record<string, unknown> = {};
  const byWord = new Map<string, [string, PropertySchema<unknown>]>();
  for (const [key, property] of Object.entries(properties)) {
    bound[key] = Object.hasOwn(said, key) ? said[key] : property.initial();
    for (const word of property.words) byWord.set(word, [key, property]);
  }
  const free = byWord.get('*');
  let freeClosed = false;
  // Consume lines from the end, because removing the first item from a long array moves the whole array.
  const queue = lines.toReversed();
  for (let line = queue.pop(); line !== undefined; line = queue.pop()) {
    const { name, args, block } = line;
    const known = name.text === '*' ? undefined : byWord.get(name.text);
    if (name.text === free?.[1].above) freeClosed = true;
    const [key, property] = known ?? (freeClosed ? [] : (free ?? []));
    if (property === undefined || key === undefined) {
      if (Object.hasOwn(retired, name.text) && block === null) {
        binding.warning(name.place, `'${name.text}' is ignored: ${retired[name.text]}`, {
          code: 'property-retired',
        });
      } else unknownProperty(name, [...byWord.keys()], binding);
      continue;
    }
    const words = new DirectiveLine(name, args, block, binding, property.show);
    guarded(binding, () => {
      bound[key] = property.take(words, bound[key]);
      const [next, ...rest] = words.takeAll();
      if (next !== undefined) {
        readsNext(next, binding);
        queue.push({ name: next, args: rest, block });
      } else if (block !== null) {
        words.refuse("unknown property '{'", name.place, {
          code: 'property-unknown',
          hint: `'${name.text}' does not accept braces.`,
        });
      }
      return null;
    });
  }
  return bound;
}

function readsNext({ text, place }: Token, binding: Binding): void {
  binding.warning(place, `'${text}' is read as if it were on a separate line`, {
    remedy: 'Put it there.',
  });
}

function unknownProperty(
  { text, place }: Property['name'],
  known: readonly string[],
  binding: Binding,
): void {
  const words = known.filter((word) => word !== '*');
  binding.problem(place, `unknown property '${text}'`, {
    code: 'property-unknown',
    hint: meant(text, words),
    remedy: words.length === 0 ? null : `Known here: ${words.join(', ')}.`,
  });
}

function exclude(syntax: Syntax, lines: readonly Property[], binding: Binding): void {
  for (const group of syntax.exclusive) {
    const used = group.filter((word) => lines.some(({ name }) => name.text === word));
    if (used.length < 2) continue;
    const first = lines.find(({ name }) => group.includes(name.text))!.name.text;
    const second = lines.find(({ name }) => name.text !== first && group.includes(name.text))!;
    binding.problem(second.name.place, `${used[0]} and ${used[1]} cannot both be set`, {
      code: 'properties-conflict',
      remedy: `Keep one of ${used.join(', ')}.`,
    });
  }
}

/** Binds one line. If the line is rejected, it becomes a problem and the result is null. */
function guarded<T>(binding: Binding, run: () => T): T | null {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof LineRefusal)) throw error;
    binding.problem(error.place, error.message, error.advice);
    return null;
  }
}

/** Returns the syntax of the directive's own line: `forward FROM TO…`. */
function formOf({ name, args }: Syntax): string {
  return [name, showPositions(args)].join(' ').trimEnd();
}

/**
 * Returns the Syntax section for the plugin's page (Markdown), which shows the whole syntax followed by every part that
 * has a description. @public
 */
export function printSyntax(syntax: Syntax): string {
  const head = formOf(syntax);
  const inner = Object.values(syntax.properties).map(({ show }) => `    ${show}`);
  const shape = inner.length === 0 ? [head] : [`${head} {`, ...inner, '}'];
  const notes = [
    ...[...Object.values(syntax.args), ...Object.values(syntax.properties)].flatMap(note),
    ...Object.entries(syntax.retired).map(([word, text]) => `- \`${word}\` is ignored: ${text}`),
  ];
  const text = ['```', ...shape, '```'];
  return [...text, ...(notes.length === 0 ? [] : ['', ...notes]), ''].join('\n');
}

function note({ show, help, defaultText }: Position<unknown> | PropertySchema<unknown>): string[] {
  const parts = [help, defaultText === '' ? '' : `default ${defaultText}`].filter(Boolean);
  return parts.length === 0 ? [] : [`- \`${show}\`: ${parts.join('; ')}.`];
}
