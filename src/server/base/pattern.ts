import { createRequire } from 'node:module';
import type { RE2JS } from 're2js';

/** A match: the whole at 0, then the groups; a group that took no part is undefined. */
export interface PatternMatch {
  readonly groups: readonly (string | undefined)[];
  /** The same by name. */
  readonly named: Readonly<Record<string, string | undefined>>;
}

/**
 * A regular expression of a Corefile, with Go's syntax and Go's matches, because CoreDNS uses Go's
 * `regexp`. Matching takes at most time proportional to the program's size times the length of the
 * text, so texts may come from anybody. JavaScript's own expressions backtrack, and must not be
 * applied to such texts.
 */
export interface Pattern {
  readonly source: string;
  /** The number of groups, without the whole match. */
  readonly groupCount: number;
  /** True if it matches anywhere in the text. */
  test(text: string): boolean;
  /** The leftmost match. */
  exec(text: string): PatternMatch | null;
}

/** Why a text is not a valid pattern, in Go's words, or in CoreDNS's if it is too long. */
export class PatternError extends Error {
  override readonly name = 'PatternError';
  /** The fault to look for in the text. */
  readonly hint: string;
  readonly kind: 'syntax' | 'length' | 'size';

  constructor(kind: PatternError['kind'], message: string, hint: string) {
    super(message);
    this.kind = kind;
    this.hint = hint;
  }
}

/** Maximum length of a pattern in bytes; the same as in CoreDNS. */
const LENGTH_MAX = 10_000;
/**
 * Maximum number of instructions in a pattern. A pattern without counted repeats has about one per character;
 * `x{1000}` has a thousand. Matching a name takes at most about 30 ns per letter and instruction.
 */
const SIZE_MAX = 12_000;

/** Compiles a pattern, within the limits above. @throws PatternError */
export function compilePattern(source: string): Pattern {
  const length = Buffer.byteLength(source);
  if (length > LENGTH_MAX) {
    const message = `regex pattern too long: ${length} > ${LENGTH_MAX}`;
    throw new PatternError('length', message, 'Split it into several patterns.');
  }
  // Checked before anything of that size is built.
  const unfolded = unfoldedSize(source);
  if (unfolded > 8 * SIZE_MAX) throw tooLarge(source, unfolded);
  const compiled = parse(source);
  const size = compiled.programSize();
  if (size > SIZE_MAX) throw tooLarge(source, size);
  return new LinearPattern(compiled);
}

function parse(source: string): RE2JS {
  const { RE2JS: engine, RE2JSSyntaxException: SyntaxProblem } = re2();
  try {
    return engine.compile(source);
  } catch (error) {
    if (!(error instanceof SyntaxProblem)) throw error;
    const { error: reason, input } = error;
    // Go's messages end with the part they are about; if the engine names none, that is the whole
    // pattern.
    const about = input ?? (reason.startsWith('trailing backslash') ? '' : source);
    const message = `error parsing regexp: ${reason}: \`${about}\``;
    throw new PatternError('syntax', message, syntaxHint(reason));
  }
}

function syntaxHint(reason: string): string {
  if (reason.startsWith('duplicate')) return 'Give each group a name of its own.';
  return reason === 'invalid repeat count'
    ? `Repeats are at most ${REPEATS_MAX}, and so are repeats of repeats taken together.`
    : 'Patterns are written in RE2 syntax: no back references, no look-around.';
}

function tooLarge(source: string, size: number): PatternError {
  return new PatternError(
    'size',
    `error parsing regexp: expression too large: \`${source}\``,
    `Its counted repeats expand to about ${size} instructions; at most ${SIZE_MAX} are taken. Write * or + for {n}.`,
  );
}

const token = /\\x\{[\da-fA-F]{1,8}\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]?|\{(\d+)(?:,(\d*))?\}|[^]/gs;

/** Maximum product of nested repeats; the same as in Go. */
const REPEATS_MAX = 1000;

/**
 * The approximate number of instructions once counted repeats are unfolded; 0 if Go's syntax does
 * not allow them.
 */
function unfoldedSize(source: string): number {
  /** For each open group: the size before it, and the most repeats of anything beside it. */
  const open: { readonly size: number; readonly most: number }[] = [];
  let size = 0;
  let most = 1;
  /** For the operand of a repeat: the size before it, and the repeats in it. */
  let before = 0;
  let times = 1;
  for (const [text, least, highest] of source.matchAll(token)) {
    if (least !== undefined) {
      const count = Number(highest || least);
      times *= Math.max(1, count);
      if (times > REPEATS_MAX) return 0;
      most = Math.max(most, times);
      size = before + (size - before) * count;
    } else if (text === ')') {
      const outer = open.pop() ?? { size: 0, most: 1 };
      before = outer.size;
      times = most;
      most = Math.max(most, outer.most);
    } else {
      before = size++;
      times = 1;
      if (text !== '(') continue;
      open.push({ size: before, most });
      most = 1;
    }
  }
  return size;
}

/** The engine's state table is used up to this program size … */
const TABLE_PROGRAM_MAX = 250;
/** … and up to this number of states, which take at most 1 MiB. */
const TABLE_STATES_MAX = 250;

class LinearPattern implements Pattern {
  readonly source: string;
  readonly groupCount: number;
  readonly #compiled: RE2JS;
  readonly #engine: ReturnType<RE2JS['re2']>;
  /** Name and number of each group that has a name. */
  readonly #names: readonly (readonly [string, number])[];
  #hasTable: boolean;

  constructor(compiled: RE2JS) {
    this.source = compiled.pattern();
    this.groupCount = compiled.groupCount();
    this.#compiled = compiled;
    this.#engine = compiled.re2();
    this.#names = Object.entries(compiled.namedGroups());
    this.#hasTable = compiled.programSize() <= TABLE_PROGRAM_MAX;
  }

  test(text: string): boolean {
    if (!this.#hasTable) return this.#engine.findIndex(text) !== null;
    const found = this.#compiled.test(text);
    this.#boundTable();
    return found;
  }

  exec(text: string): PatternMatch | null {
    const found = this.#engine.findSubmatch(text) as (string | null)[] | null;
    if (found === null) return null;
    const groups = found.map((group) => group ?? undefined);
    return {
      groups,
      named: Object.fromEntries(this.#names.map(([name, group]) => [name, groups[group]])),
    };
  }

  /**
   * For yes or no the engine keeps a table of the states it has been in, which makes usual patterns
   * several times faster. Some patterns have a new state for nearly every text: clients could fill
   * 8 MiB with them, and each state takes longer to make than it saves. Such a pattern continues
   * without a table.
   */
  #boundTable(): void {
    const table = this.#engine.lazyDFA as { readonly stateCount: number } | null;
    if (table === null || table.stateCount <= TABLE_STATES_MAX) return;
    this.#hasTable = false;
    this.#engine.lazyDFA = null as never;
  }
}

let loaded: typeof import('re2js') | null = null;

/** Loaded with the first pattern: a Corefile without any does not pay for it. */
function re2(): typeof import('re2js') {
  loaded ??= createRequire(import.meta.url)('re2js') as typeof import('re2js');
  return loaded;
}
