import { compileRe2, PatternError } from './re2.ts';
import { compileProgram, type Program } from './pattern-program.ts';
import { ProgramRun } from './pattern-run.ts';

/** What matched: the whole at 0, groups behind it; a group that took no part is undefined. */
export interface PatternMatch {
  readonly groups: readonly (string | undefined)[];
  /** The same by name. */
  readonly named: Readonly<Record<string, string | undefined>>;
}

/** A regular expression of Go's that takes no more than linear time for a text: safe for texts of strangers. */
export interface Pattern {
  readonly groupCount: number;
  test(text: string): boolean;
  exec(text: string): PatternMatch | null;
}

/**
 * Compiles RE2 syntax. JavaScript's own engine does the work for expressions that cannot take long; those with loops
 * within loops, or many one after the other, are run here, where no state is tried twice at one place of the text.
 * (V8 tries them all: `^([^.]+)+\.example$` kept it busy for minutes with a name of 250 characters.)
 * @throws PatternError, in Go's words
 */
export function compilePattern(source: string): Pattern {
  const expression = compileRe2(source);
  const program = compileProgram(expression);
  return program === null ? new NativePattern(expression) : new LinearPattern(program);
}

/** Always by the engine here: for comparison in tests. @throws PatternError */
export function compileLinear(source: string): Pattern {
  const program = compileProgram(compileRe2(source), true);
  if (program === null) throw new PatternError('there is no program');
  return new LinearPattern(program);
}

class NativePattern implements Pattern {
  readonly groupCount: number;
  readonly #expression: RegExp;

  constructor(expression: RegExp) {
    this.#expression = expression;
    // With an empty alternative it matches anything, and so tells how many groups it has.
    this.groupCount = new RegExp(`${expression.source}|`, expression.flags).exec('')!.length - 1;
  }

  test(text: string): boolean {
    return this.#expression.test(text);
  }

  exec(text: string): PatternMatch | null {
    const found = this.#expression.exec(text);
    return found === null ? null : { groups: found, named: found.groups ?? {} };
  }
}

class LinearPattern implements Pattern {
  readonly groupCount: number;
  readonly #names: ReadonlyMap<string, number>;
  readonly #run: ProgramRun;

  constructor(program: Program) {
    this.groupCount = program.groupCount;
    this.#names = program.names;
    this.#run = new ProgramRun(program);
  }

  test(text: string): boolean {
    return this.#run.match(text) !== null;
  }

  exec(text: string): PatternMatch | null {
    const marks = this.#run.match(text);
    if (marks === null) return null;
    const groups: (string | undefined)[] = [];
    for (let group = 0; group <= this.groupCount; group++) {
      const [from, to] = [marks[2 * group]!, marks[2 * group + 1]!];
      groups.push(from < 0 || to < 0 ? undefined : text.slice(from, to));
    }
    const named: Record<string, string | undefined> = {};
    for (const [name, group] of this.#names) named[name] = groups[group];
    return { groups, named };
  }
}
