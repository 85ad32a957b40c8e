import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { evaluate } from './evaluate.ts';
import { TemplateError } from './lex.ts';
import { parseTemplate } from './parse.ts';
import { printNodes } from './template-tree.ts';
import { Struct, type GoValue } from './go-values.ts';

const data = new Struct('data', {
  Name: () => 'a.example.',
  Match: () => ['x', 'y'],
  Group: () => new Map<string, GoValue>([['a', '1']]),
});

const piece = fc.constantFrom(
  ...[
    '{{',
    '}}',
    '{{-',
    '-}}',
    ' ',
    ' ',
    '.',
    '.Name',
    '.Group.a',
    '.Match',
    '$',
    '$x',
    ':=',
    '=',
    '|',
    '(',
    ')',
    ',',
  ],
  ...[
    'if',
    'else',
    'end',
    'range',
    'with',
    'break',
    'eq',
    'index',
    'len',
    'printf',
    'print',
    'slice',
    'and',
    'parseInt',
  ],
  ...[
    '"a"',
    '"%d"',
    '1',
    '-2',
    '0x',
    '1.5',
    "'c'",
    '`r`',
    'true',
    'nil',
    '/*',
    '*/',
    'text',
    '\n',
    '"',
  ],
);
const action = fc.array(piece, { maxLength: 6 }).map((words) => `{{ ${words.join(' ')} }}`);
const source = fc.oneof(
  fc.array(piece, { maxLength: 15 }).map((pieces) => pieces.join('')),
  fc
    .array(
      fc.oneof(
        action,
        fc.constantFrom('{{ if .Name }}', '{{ range .Match }}', '{{ else }}', '{{ end }}', 'text'),
      ),
      { maxLength: 8 },
    )
    .map((parts) => parts.join('')),
);

describe('templates from any text', () => {
  test('any text is accepted as a template or rejected with a position, and so is its evaluation', () => {
    fc.assert(
      fc.property(source, (text) => {
        try {
          evaluate(parseTemplate(text), data);
        } catch (error) {
          assert.ok(error instanceof TemplateError, String((error as Error).stack));
          assert.ok(error.at >= 0 && error.at <= text.length);
        }
      }),
      { numRuns: 5000 },
    );
  });

  test('a printed template parses to the same template', () => {
    fc.assert(
      fc.property(source, (text) => {
        let printed: string;
        try {
          printed = printNodes(parseTemplate(text));
        } catch (error) {
          assert.ok(error instanceof TemplateError);
          return;
        }
        if (!/[{}]/.test(text.replaceAll(/\{\{|\}\}/g, '')))
          assert.equal(printNodes(parseTemplate(printed)), printed);
      }),
      { numRuns: 5000 },
    );
  });
});
