/** The expectation after an act's steps, which is a result, or an expression over several, and the required value. */
import { isObject } from '../../../server/base/json-object.ts';
import { didYouMean } from '../../../server/base/problem.ts';
import { judges, words, type ValueJudge } from './conditions.ts';
import type { Fact } from '../story.ts';
import { BadExpression, parseExpression, type Expression, type Results } from './expression.ts';
import {
  mapping,
  optional,
  required,
  text,
  type YamlReading,
  type YamlShape,
} from '../../../server/kube/manifests/yaml-shape.ts';
import type { DocumentPath } from '../../../server/kube/manifests/yaml-document.ts';
import { onlyWith } from './story-reading.ts';

export interface Expectation extends ValueJudge {
  readonly what: string;
  readonly value: Expression;
  /** Used to report errors in the results it mentions. */
  readonly path: DocumentPath;
  readonly only: string | null;
}

const fields = {
  value: required(text, 'a result: STEP.RESULT; also numbers, + - * / and brackets'),
  what: optional(text, null, 'its label in the verdict; {STEP.RESULT} is replaced with the result'),
  only: onlyWith,
} as const;

export const expectation: YamlShape<Expectation | null> = {
  placeholder: `{ value: STEP.RESULT, ${Object.keys(judges).join(' | ')}: … }`,
  read(given, path, reading) {
    if (!isObject(given)) {
      reading.tell(
        path,
        'an expectation is a mapping',
        'Example: - { value: lookup.found, is: true }',
      );
      return null;
    }
    const mine = Object.entries(given).filter(([key]) => Object.hasOwn(judges, key));
    const rest = Object.fromEntries(
      Object.entries(given).filter(([key]) => !Object.hasOwn(judges, key)),
    );
    const unknown = Object.keys(rest).filter((key) => !Object.hasOwn(fields, key));
    for (const key of unknown) {
      const known = Object.keys(judges);
      const others = `Known: ${known.join(', ')}`;
      const hint = didYouMean(key, [...known, ...Object.keys(fields)], others);
      reading.tell([...path, key], `there is no expectation "${key}"`, hint);
      delete rest[key];
    }
    const { value, what, only } = mapping(fields, 'an expectation').read(rest, path, reading);
    if (mine.length !== 1) {
      if (unknown.length === 0)
        reading.tell(
          path,
          mine.length === 0 ? 'what has the value to be?' : 'give only one expectation at a time',
          `One of ${Object.keys(judges).join(', ')}`,
        );
      return null;
    }
    const [key, wish] = mine[0]!;
    const made = judges[key]!.make(wish);
    if (made === null) {
      reading.tell([...path, key], `"${key}" takes ${judges[key]!.wants}`);
      return null;
    }
    const expression = readExpression(value, [...path, 'value'], reading);
    if (expression === null) return null;
    return { what: what ?? value, value: expression, path: [...path, 'value'], only, ...made };
  },
};

function readExpression(
  source: string,
  path: DocumentPath,
  reading: YamlReading,
): Expression | null {
  // The missing key has already been reported.
  if (source === undefined || source === '') return null;
  try {
    return parseExpression(source);
  } catch (error) {
    if (!(error instanceof BadExpression)) throw error;
    const hint = 'Example: lookup.seconds, or stream.answered / stream.sent';
    reading.tell(path, `this is not a value: ${error.message}`, hint);
    return null;
  }
}

/** Replaces `{STEP.RESULT}` in a text with that result. */
export function filled(text: string, results: ReadonlyMap<string, Results>): string {
  return text.replaceAll(/\{(\w+)\.(\w+)\}/g, (all, step: string, result: string) => {
    const found = results.get(step)?.[result];
    return found === undefined ? all : words(typeof found === 'function' ? found() : found);
  });
}

/** Evaluates an expectation to a fact. */
export function judged(
  { what: title, value, wanted, judge }: Expectation,
  results: ReadonlyMap<string, Results>,
): Fact {
  const what = filled(title, results);
  try {
    const found = value.value(({ step, result }) => {
      const one = results.get(step)?.[result];
      if (one === undefined) throw new RangeError(`${step} was not done`);
      return typeof one === 'function' ? one() : one;
    });
    return { what, expected: wanted, found: words(found), holds: judge(found) };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { what, expected: wanted, found: error.message, holds: false };
  }
}
