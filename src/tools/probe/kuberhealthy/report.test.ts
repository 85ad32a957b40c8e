import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Problem, problemsIn } from '../../../server/base/problem.ts';
import { readCheckFile } from '../check-file.ts';
import { reportOfProblems } from './report.ts';

test('an error in an annotation is reported with its line and a suggestion', () => {
  const mistaken = 'vip: 192.0.2.1\nchekcs:\n  - check: tcp\n';
  try {
    readCheckFile(mistaken, 'ndots.dev/checks of team/dns');
    assert.fail('it was taken');
  } catch (error) {
    const { OK, Errors } = reportOfProblems(problemsIn(error) ?? []);
    assert.equal(OK, false);
    assert.match(
      Errors[0]!,
      /^DNS unknown: the file has no key "chekcs" \(line [23]: Did you mean checks\?\)/,
    );
  }
});

test('an error without a position is reported unchanged', () => {
  const problem = new Problem({ code: 'x', text: 'no service is known' });
  assert.deepEqual(reportOfProblems([problem]).Errors, ['DNS unknown: no service is known']);
});
