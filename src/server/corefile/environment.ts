import type { Environment } from '../base/environment.ts';
import { parseProblem } from './problems.ts';
import type { ProblemReport } from './problem-report.ts';
import type { Token } from './corefile-tree.ts';

/** A text in which references to environment variables have been replaced. */
export interface Substituted {
  readonly text: string;
  /** Variables that have no value, and were replaced by an empty text. */
  readonly unset: readonly string[];
  /** True if a reference directly follows a brace, so that it is probably part of a Go template (`{{$x}}`). */
  readonly template: boolean;
  /** True if the values refer to each other in a loop or become too long. In this case, the text was left unchanged. */
  readonly endless: boolean;
}

/** Maximum number of replacements in one word. */
const ROUNDS_MAX = 1000;
/** Maximum number of characters in a word after all replacements. */
const CHARACTERS_MAX = 1 << 20;

/**
 * Replaces `{%NAME%}`, then `{$NAME}`. At an empty name (`{$}`), which stays as written, replacement ends. Values are
 * searched for references too.
 */
function substitute(text: string, env: Environment): Substituted {
  const unset: string[] = [];
  let result = text;
  let template = false;
  for (const [open, close] of [
    ['{%', '%}'],
    ['{$', '}'],
  ] as const) {
    for (let round = 0; ; round++) {
      const start = result.indexOf(open);
      const end = start < 0 ? -1 : result.indexOf(close, start);
      if (end <= start + open.length) break;
      const name = result.slice(start + open.length, end);
      const value = Object.hasOwn(env, name) ? env[name] : undefined;
      const pieces = result.split(result.slice(start, end + close.length));
      const size = result.length + (pieces.length - 1) * (value ?? '').length;
      if (round === ROUNDS_MAX || size > CHARACTERS_MAX) {
        return { text, unset, template, endless: true };
      }
      if (value === undefined) unset.push(name);
      if (start > 0 && result[start - 1] === '{') template = true;
      result = pieces.join(value ?? '');
    }
  }
  return { text: result, unset, template, endless: false };
}

/** Returns the token's text with its references replaced, and reports suspicious ones. */
export function textOf({ text, place }: Token, env: Environment, report: ProblemReport): string {
  if (!text.includes('{$') && !text.includes('{%')) return text;
  const found = substitute(text, env);
  if (found.endless) {
    report.problem(
      parseProblem(place, 'environment variables refer to each other in a loop', {
        code: 'environment-endless',
      }),
    );
  }
  if (found.template) {
    report.warning(
      place,
      'the text between {$ and } is read as the name of an environment variable',
      {
        code: 'environment-template',
        remedy: 'In a template, write {{ $x }}, with blanks.',
      },
    );
  } else if (found.unset.length > 0) {
    const names = [...new Set(found.unset)].join(', ');
    report.warning(
      place,
      `environment variable ${names} is not set, so it is replaced with nothing`,
      {
        code: 'environment-unset',
      },
    );
  }
  return found.text;
}
