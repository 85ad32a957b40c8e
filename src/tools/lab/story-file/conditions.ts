/** The conditions available to expectations: equality, bounds and substrings. */
import { compilePattern, PatternError } from '../../../server/base/pattern.ts';
import type { Result } from './expression.ts';

export interface ValueJudge {
  readonly wanted: string;
  judge(value: Result): boolean;
}

export interface Judge {
  readonly help: string;
  /** Null if the value is not valid for the condition. `wants` describes valid ones. */
  make(given: unknown): ValueJudge | null;
  readonly wants: string;
}

function same(value: Result, given: Result): boolean {
  return value === given || words(value) === words(given);
}

/** Prints a value as facts show it, with yes and no for booleans and at most two decimal places for numbers. */
export function words(value: Result): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return typeof value === 'number' ? String(Number(value.toFixed(2))) : value;
}

function isResult(value: unknown): value is Result {
  return ['string', 'number', 'boolean'].includes(typeof value);
}

const compared = (
  wants: string,
  wanted: (given: number) => string,
  judge: (value: number, given: number) => boolean,
): Pick<Judge, 'make' | 'wants'> => ({
  wants,
  make: (given) =>
    typeof given === 'number'
      ? {
          wanted: wanted(given),
          judge: (value) => typeof value === 'number' && judge(value, given),
        }
      : null,
});

export const judges: Readonly<Record<string, Judge>> = {
  is: {
    help: 'this value (true and false are shown as yes and no)',
    wants: 'a text, a number, true or false',
    make: (given) =>
      isResult(given) ? { wanted: words(given), judge: (value) => same(value, given) } : null,
  },
  isNot: {
    help: 'any other value',
    wants: 'a text, a number, true or false',
    make: (given) =>
      isResult(given)
        ? { wanted: `not ${words(given)}`, judge: (value) => !same(value, given) }
        : null,
  },
  atLeast: {
    help: 'this number or more',
    ...compared(
      'a number',
      (given) => `at least ${given}`,
      (value, given) => value >= given,
    ),
  },
  atMost: {
    help: 'this number or less',
    ...compared(
      'a number',
      (given) => `at most ${given}`,
      (value, given) => value <= given,
    ),
  },
  between: {
    help: 'a number between these two, inclusive',
    wants: 'two numbers: [2.4, 5]',
    make(given) {
      if (!Array.isArray(given) || given.length !== 2) return null;
      const [least, most] = given as readonly unknown[];
      if (typeof least !== 'number' || typeof most !== 'number' || least > most) return null;
      return {
        wanted: `${least} to ${most}`,
        judge: (value) => typeof value === 'number' && value >= least && value <= most,
      };
    },
  },
  contains: {
    help: 'text that contains this',
    wants: 'a text',
    make: (given) =>
      typeof given === 'string'
        ? { wanted: `… ${given} …`, judge: (value) => words(value).includes(given) }
        : null,
  },
  matches: {
    help: 'text that matches this pattern (RE2)',
    wants: 'a pattern such as "^10[.]"',
    make(given) {
      if (typeof given !== 'string') return null;
      try {
        const pattern = compilePattern(given);
        return { wanted: `/${given}/`, judge: (value) => pattern.test(words(value)) };
      } catch (error) {
        if (error instanceof PatternError) return null;
        throw error;
      }
    },
  },
};
