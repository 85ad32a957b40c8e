import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { parseName, printName } from '../../wire/name.ts';
import { makeQuery } from '../../transport/query.ts';
import { absoluteText, isName, nameMatch, renaming } from './matching.ts';
import { NameText } from './name-text.ts';

/** A small set of characters, so that parts occur in names; some of them are escaped. */
const label = fc
  .array(fc.constantFrom('a', 'b', 'A', '-', '\\.', '\\000', '3', 'é'), {
    minLength: 1,
    maxLength: 5,
  })
  .map((parts) => parts.join(''));
const name = fc
  .array(label, { maxLength: 6 })
  .map((labels) => (labels.length === 0 ? '.' : `${labels.join('.')}.`));
const part = fc
  .array(fc.constantFrom('a', 'b', '-', '.', '3', '\\.'), { minLength: 1, maxLength: 4 })
  .map((parts) => parts.join(''));

describe('matching names', () => {
  const text = new NameText();
  const tests = {
    exact: (whole: string, from: string) => whole === from,
    prefix: (whole: string, from: string) => whole.startsWith(from),
    suffix: (whole: string, from: string) => whole.endsWith(from),
    substring: (whole: string, from: string) => whole.includes(from),
  } as const;

  for (const kind of ['exact', 'prefix', 'suffix', 'substring'] as const) {
    test(`${kind} by bytes equals ${kind} by text`, () => {
      fc.assert(
        fc.property(name, part, (spelled, from) => {
          const wire = parseName(spelled);
          const query = makeQuery(wire, 1);
          const left = absoluteText(from);
          text.forget();
          const fits = nameMatch(kind, left)(query, text);
          assert.equal(
            fits,
            tests[kind](
              query.name,
              kind === 'exact' && isName(left) ? printName(parseName(left)) : left,
            ),
          );
          if (!fits) return;
          const renamed = renaming(kind, left, 'q.')(query.name);
          assert.ok(kind === 'substring' || renamed.includes('q.'), renamed);
        }),
        { numRuns: 500 },
      );
    });
  }
});
