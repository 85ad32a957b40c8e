import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EntryReport } from '../../server/plugins/cache/cache-messages.ts';
import type { CacheAnswerDocument } from '../cli/cache/cache-answers.ts';
import { cacheRows } from './cache-rows.ts';

const entry: EntryReport = {
  ...{ name: 'www.example.', type: 'A', class: 'IN', rcode: 'NOERROR', half: 'success' },
  ...{ dnssecOk: false, checkingDisabled: false, ttl: 20, storedTtl: 60, hits: 3 },
  ...{ from: 'template', bytes: 60 },
};

function answer(
  server: string,
  found: number,
  ...entries: Partial<EntryReport>[]
): CacheAnswerDocument {
  const told = [
    { worker: 0, found, size: 100, entries: entries.map((each) => ({ ...entry, ...each })) },
  ];
  return {
    server,
    name: 'example.',
    caches: [{ servers: [], zones: ['.'], view: '', workers: 1, told }],
  };
}

const missing = { type: 'ANY', rcode: 'NXDOMAIN', half: 'denial' } as const;

for (const [title, entries, differs] of [
  ['the same result', [{}, { ttl: 5 }], false],
  ['another code', [{}, { rcode: 'SERVFAIL', half: 'denial' }], true],
  ['no data', [{}, { half: 'denial' }], true],
  ['no such name', [{}, missing], true],
  ['another type', [{}, { type: 'AAAA', half: 'denial' }], false],
  ['another kind of client', [{}, { ...missing, dnssecOk: true }], false],
] as const)
  test(`${title} on another server ${differs ? 'differs' : 'does not differ'}`, () => {
    const [one, other] = entries;
    const { rows } = cacheRows([answer('a', 1, one), answer('b', 1, other)]);
    assert.deepEqual(
      rows.map((row) => row.differs),
      [differs, differs],
    );
  });

test('rows beyond the limit and entries that a worker omitted are counted', () => {
  const many = Array.from({ length: 600 }, (_, index) => ({ name: `n${index}.example.` }));
  const { rows, leftOut } = cacheRows([answer('a', 10_000, ...many)]);
  assert.equal(rows.length, 500);
  assert.equal(leftOut, 9500);
});
