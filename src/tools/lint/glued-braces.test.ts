import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lintTexts } from '../../../test/kit/lint-text.ts';

/** The errors in a text, as `LINE:COLUMN TEXT | REMEDY`. */
async function errorsIn(text: string): Promise<readonly string[]> {
  const { findings } = await lintTexts({ files: { Corefile: text }, live: false });
  return findings
    .filter(({ severity }) => severity === 'error')
    .map(({ spot, text: what, remedy }) => `${spot.line}:${spot.column} ${what} | ${remedy}`);
}

test('a { with no blank before it is the only fault, with the words to type', async () => {
  assert.deepEqual(await errorsIn('.:53{\n    errors\n    whoami\n}\n'), [
    "1:1 the { in '.:53{' opens no block | Write '.:53 {', with a blank before the {.",
  ]);
  assert.deepEqual(await errorsIn('a.example:53, b.example:53{\n    errors\n    whoami\n}\n'), [
    "1:15 the { in 'b.example:53{' opens no block | Write 'b.example:53 {', with a blank before the {.",
  ]);
  const forward =
    '.:53 {\n    forward . 10.0.0.2{\n        max_concurrent 5\n    }\n    cache\n}\n';
  assert.deepEqual(await errorsIn(forward), [
    "2:15 the { in '10.0.0.2{' opens no block | Write '10.0.0.2 {', with a blank before the {.",
  ]);
});

test('a } that ends a word or another } is the only fault', async () => {
  assert.deepEqual(await errorsIn('.:53 {\n    errors\n    whoami}\n'), [
    "3:5 the } in 'whoami}' closes no block | Write 'whoami' and '}' on separate lines.",
  ]);
  assert.deepEqual(await errorsIn('.:53 {\n    whoami\n    errors {\n    }}\n'), [
    "4:5 the } in '}}' closes no block | Write '}' and '}' on separate lines.",
  ]);
});

test('words after a { belong on the next line', async () => {
  assert.deepEqual(
    await errorsIn('.:53 {\n    forward . 10.0.0.2 {max_fails 2\n    }\n    cache\n}\n'),
    ["2:24 the { in '{max_fails' opens no block | Write '{' and 'max_fails' on separate lines."],
  );
});

test('a block that is written on one line has a fault for each of its braces', async () => {
  assert.deepEqual(await errorsIn('.:53{ whoami }\n'), [
    "1:1 the { in '.:53{' opens no block | Write '.:53 {', with a blank before the {.",
    '1:14 this } closes no block | Put the } on a separate line.',
  ]);
});

test('braces of templates and patterns are not faults', async () => {
  const text = String.raw`.:53 {
    template IN A example.org {
        match ^a{2}[.]example[.]org[.]$
        answer "{{ .Name }} 60 IN A 10.0.0.2"
    }
    log . {remote} {
        class error
    }
}
`;
  const errors = await errorsIn(text);
  assert.deepEqual(
    errors.filter((each) => /block \|/.test(each)),
    [],
  );
});
