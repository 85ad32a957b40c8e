import { Problem, nearest } from '../base/problem.ts';
import type { Place } from '../base/problem.ts';

/** The parts of a problem other than its text. */
export interface Advice {
  /** Stable, and in lower case with dashes. It is the name of the entry in docs/problems.md. */
  readonly code?: string | undefined;
  readonly hint?: string | null | undefined;
  readonly remedy?: string | null | undefined;
}

/** Creates an error in the file itself: `FILE:LINE - Error during parsing: TEXT`. */
export function parseProblem(place: Place, text: string, advice: Advice = {}): Problem {
  return problem('corefile-syntax', place, `${at(place)} - Error during parsing: ${text}`, advice);
}

/** Creates a syntax error: `FILE:LINE - Syntax error: Unexpected token 'FOUND', expecting 'EXPECTED'`. */
export function syntaxProblem(
  place: Place,
  found: string,
  expected: string,
  advice: Advice = {},
): Problem {
  const text = `${at(place)} - Syntax error: Unexpected token '${found}', expecting '${expected}'`;
  return problem('corefile-syntax', place, text, advice);
}

/** Creates an error about the blocks as a whole: `error inspecting server blocks: TEXT`. */
export function blockProblem(place: Place, text: string, advice: Advice = {}): Problem {
  return problem('corefile-address', place, `error inspecting server blocks: ${text}`, advice);
}

/** Creates an error in a plugin's lines: `plugin/NAME: FILE:LINE - Error during parsing: TEXT`. */
export function pluginProblem(
  plugin: string,
  place: Place,
  text: string,
  advice: Advice = {},
): Problem {
  const full = `plugin/${plugin}: ${at(place)} - Error during parsing: ${text}`;
  return problem('directive-value', place, full, advice);
}

/** Creates an error that CoreDNS reports without a line: `plugin/NAME: TEXT`. Also used for warnings from plugins. */
export function pluginRemark(
  plugin: string,
  place: Place,
  text: string,
  advice: Advice = {},
): Problem {
  return problem('directive-value', place, `plugin/${plugin}: ${text}`, advice);
}

/** Creates a warning about something that works, but probably not as intended. */
export function warning(place: Place, text: string, advice: Advice = {}): Problem {
  return problem('corefile-warning', place, text, advice);
}

/** Returns "Did you mean …?" if there is a similar known word. */
export function meant(word: string, known: Iterable<string>): string | null {
  // Names are short, and comparing a long word with every one of them would be slow.
  if (word.length > 64) return null;
  const found = nearest(word, known) ?? longer(word, [...known]);
  return found === null ? null : `Did you mean '${found}'?`;
}

/** Returns the known word that begins with this one, if there is exactly one: `slip-ratio` for `slip`. */
function longer(word: string, known: readonly string[]): string | null {
  const found = known.filter((one) => word.length > 2 && one.startsWith(word.toLowerCase()));
  return found.length === 1 ? found[0]! : null;
}

function at(place: Place): string {
  return `${place.file}:${place.line}`;
}

function problem(code: string, place: Place, text: string, advice: Advice): Problem {
  return new Problem({
    code: advice.code ?? code,
    text,
    place,
    hint: advice.hint ?? undefined,
    remedy: advice.remedy ?? undefined,
  });
}
