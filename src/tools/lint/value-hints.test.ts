import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { lintTexts } from '../../../test/kit/lint-text.ts';

describe('a hint with a placeholder of the syntax names the option and shows an example', () => {
  for (const [property, hint] of [
    [
      'max_concurrent x',
      'In max_concurrent MAX, MAX is a whole number at least 0. Example: max_concurrent 1000',
    ],
    [
      'max_concurrent -5',
      'In max_concurrent MAX, MAX must be at least 0. Example: max_concurrent 1000',
    ],
    ['max_concurrent', 'Syntax: max_concurrent MAX. Example: max_concurrent 1000'],
    ['max_fails x', 'In max_fails N, N is a whole number at least 0. Example: max_fails 1'],
    ['read_timeout', 'Syntax: read_timeout DURATION. Example: read_timeout 5s'],
  ] as const)
    test(property, async () => {
      const Corefile = `. {\n    forward . 10.0.0.2 {\n        ${property}\n    }\n}\n`;
      const { findings } = await lintTexts({ files: { Corefile }, live: false });
      assert.equal(findings.find(({ code }) => code === 'CF43')?.hint, hint);
    });
});
