import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fitTable, fixed, shrinking, type ScreenColumn } from './table-layout.ts';
import type { StyledLine } from './styled-line.ts';

interface Row {
  readonly name: string;
  readonly count: number;
  readonly note: string;
}

const columns: readonly ScreenColumn<Row>[] = [
  shrinking('NAME', { rank: 0, least: 8, sort: 'name', cell: ({ name }) => [name, 'strong'] }),
  fixed('COUNT', { rank: 1, sort: 'count', cell: ({ count }) => [String(count), 'plain'] }),
  shrinking('NOTE', { rank: 7, least: 4, cell: ({ note }) => [note, 'dim'] }),
];
const rows: readonly Row[] = [
  { name: 'api.example.com', count: 1234, note: 'a note' },
  { name: 'db', count: 7, note: '' },
];

describe('a table', () => {
  for (const [width, header, row] of [
    [40, 'NAME            COUNT NOTE', 'api.example.com  1234 a note'],
    [27, 'NAME            COUNT', 'api.example.com  1234'],
    [16, 'NAME       COUNT', 'api.examp…  1234'],
    [10, 'NAME', 'api.examp…'],
    [4, 'NAME', 'api…'],
  ] as const)
    test(`of ${width} columns keeps what matters most`, () => {
      const table = fitted(width);
      assert.equal(textOf(table.header), header);
      assert.equal(textOf(table.row(rows[0]!)), row);
    });

  test('no line is wider than the table', () => {
    for (let width = 1; width < 50; width++)
      for (const line of [fitted(width).header, ...rows.map((row) => fitted(width).row(row))])
        assert.ok(textOf(line).length <= width, `${width}: ${textOf(line)}`);
  });

  test('columns do not become narrower again', () => {
    const widths = new Map<number, number>();
    fitTable(columns, rows, 40, widths, null);
    assert.equal(
      textOf(fitTable(columns, rows.slice(1), 40, widths, null).header),
      'NAME            COUNT NOTE',
    );
  });

  test('the sort column has an arrow', () => {
    const sorted = { key: 'count', reversed: false };
    assert.match(textOf(fitTable(columns, rows, 40, new Map(), sorted).header), /COUNT↓/);
  });

  test('escaped control characters count with their visible width', () => {
    const evil = [{ name: '\u001b[2J', count: 1, note: '' }];
    assert.equal(
      textOf(fitTable(columns, evil, 20, new Map(), null).row(evil[0]!)),
      '\\u001b[2J     1',
    );
  });
});

function fitted(width: number): ReturnType<typeof fitTable<Row>> {
  return fitTable(columns, rows, width, new Map(), null);
}

function textOf(line: StyledLine): string {
  return line
    .map(([text]) => text)
    .join('')
    .trimEnd();
}
