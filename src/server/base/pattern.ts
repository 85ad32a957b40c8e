import { createRequire } from 'node:module';
import type { RE2JS } from 're2js';

/** A match: the whole match at index 0, followed by the groups. Groups that did not participate are undefined. */
export interface PatternMatch {
  readonly groups: readonly (string | undefined)[];
  /** The groups by name. */
  readonly named: Readonly<Record<string, string | undefined>>;
}

/**
 * A regular expression from a Corefile. It has Go's syntax and match semantics, because CoreDNS uses Go's `regexp`.
 * Matching is linear in program size times text length, so untrusted texts are safe. JavaScript's own regular
 * expressions backtrack, and must not be applied to such texts.
 */
export interface Pattern {
  readonly source: string;
  /** Number of groups, excluding the whole match. */
  readonly groupCount: number;
  /** Returns true if the pattern matches anywhere in the text. */
  test(text: string): boolean;
  exec(text: string): PatternMatch | null;
}

/** Explains why a pattern is invalid, in Go's words, or in CoreDNS's words if it is too long. */
export class PatternError extends Error {
  override readonly name = 'PatternError';
  /** Points to the likely error in the pattern. */
  readonly hint: string;
  readonly kind: 'syntax' | 'length' | 'size';

  constructor(kind: PatternError['kind'], message: string, hint: string) {
    super(message);
    this.kind = kind;
    this.hint = hint;
  }
}

/** Maximum pattern length in bytes; CoreDNS's limit. */
const LENGTH_MAX = 10_000;
/**
 * Maximum number of instructions, which is about one per character, or a thousand for `x{1000}`. In the worst case,
 * matching a name takes about 30 ns per letter and instruction.
 */
const SIZE_MAX = 12_000;

/**
 * Compiles a pattern within the limits above.
 * @throws PatternError
 */
export function compilePattern(source: string): Pattern {
  const length = Buffer.byteLength(source);
  if (length > LENGTH_MAX) {
    const message = `regex pattern too long: ${length} > ${LENGTH_MAX}`;
    throw new PatternError('length', message, 'Split it into several patterns.');
  }
  // Check before building anything of that size.
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
    // Go's messages end with the offending part. If the engine does not provide it, use the whole pattern.
    const about = input ?? (reason.startsWith('trailing backslash') ? '' : source);
    const message = `error parsing regexp: ${reason}: \`${about}\``;
    throw new PatternError('syntax', message, syntaxHint(reason));
  }
}

function syntaxHint(reason: string): string {
  if (reason.startsWith('duplicate')) return 'Give each group a different name.';
  return reason === 'invalid repeat count'
    ? `Repeat counts, and the product of nested repeat counts, must not exceed ${REPEATS_MAX}.`
    : 'Patterns use RE2 syntax, without backreferences and lookarounds.';
}

function tooLarge(source: string, size: number): PatternError {
  return new PatternError(
    'size',
    `error parsing regexp: expression too large: \`${source}\``,
    `Its counted repeats expand to about ${size} instructions; at most ${SIZE_MAX} are allowed. Write * or + for {n}.`,
  );
}

const token = /\\x\{[\da-fA-F]{1,8}\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]?|\{(\d+)(?:,(\d*))?\}|[^]/gs;

/** Maximum product of nested repeat counts. This is Go's own limit. */
const REPEATS_MAX = 1000;

/**
 * Estimates the number of instructions after counted repeats are expanded. Returns 0 if Go's syntax does not allow the
 * repeats.
 */
function unfoldedSize(source: string): number {
  /** For each open group, the size before it and the largest repeat count among its siblings. */
  const open: { readonly size: number; readonly most: number }[] = [];
  let size = 0;
  let most = 1;
  /** For a repeat's operand, the size before it and the repeat count inside it. */
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
/** … and up to this number of states, at most 1 MiB. */
const TABLE_STATES_MAX = 250;

class LinearPattern implements Pattern {
  readonly source: string;
  readonly groupCount: number;
  readonly #compiled: RE2JS;
  readonly #engine: ReturnType<RE2JS['re2']>;
  /** Name and number of each named group. */
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
   * For boolean matches, the engine caches the states it has visited, which makes typical patterns several times
   * faster. However, some patterns reach a new state on nearly every text. Clients could then fill 8 MiB, and creating
   * a state would cost more than it saves. Such patterns continue without a table.
   */
  #boundTable(): void {
    const table = this.#engine.lazyDFA as { readonly stateCount: number } | null;
    if (table === null || table.stateCount <= TABLE_STATES_MAX) return;
    this.#hasTable = false;
    this.#engine.lazyDFA = null as never;
  }
}

let loaded: typeof import('re2js') | null = null;

/** Loaded on first use, so that Corefiles without patterns do not pay for it. */
function re2(): typeof import('re2js') {
  loaded ??= createRequire(import.meta.url)('re2js') as typeof import('re2js');
  return loaded;
}
