import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ApiClient } from '../../../server/kube/api/client.ts';
import { lackingOf } from './lacking.ts';
import { OBJECTS_BYTES_MAX, readObjects } from './objects.ts';
import { configured, running } from './wanted.ts';

/** An API server all of whose lists go on for ever. @param itemBytes of each object, about */
function endless(itemBytes: number, asked: string[] = []): ApiClient {
  const padding = 'x'.repeat(itemBytes);
  let nth = 0;
  return {
    host: 'api.test',
    async stream({ query, into, path }) {
      const limit = Number(query?.['limit']);
      asked.push(`${path.split('/').at(-1)} ${limit}`);
      into.push(Buffer.from('{"metadata":{"continue":"more"},"items":['));
      for (let i = 0; i < limit; i++) {
        const item = JSON.stringify({ metadata: { name: `n${nth++}` }, data: { padding } });
        into.push(Buffer.from(`${i === 0 ? '' : ','}${item}`));
        if (i % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      into.push(Buffer.from(']}'));
    },
    close: () => undefined,
  };
}

const wanted = [...configured('kube-system'), ...running('kube-system')];

describe('lists without end', () => {
  test('are given up at a bound that all of them share, and it is said after how many objects', async () => {
    const before = process.memoryUsage().rss;
    const lists = await readObjects(endless(20_000), wanted, new AbortController().signal);
    const kept = lists.reduce((sum, { items }) => sum + JSON.stringify(items).length, 0);
    assert.ok(kept <= 1.01 * OBJECTS_BYTES_MAX, `${kept} bytes`);
    assert.ok(kept >= 0.8 * OBJECTS_BYTES_MAX, `${kept} bytes`);
    const lacking = lackingOf(lists);
    assert.equal(lacking.length, wanted.length);
    assert.match(lacking[0]!.why, /"list configmaps" is larger than the limit \(32 MiB/);
    assert.match(lacking[0]!.so, /^the Corefile, after the first \d+$/);
    const grown = process.memoryUsage().rss - before;
    // With the runtime's usual heap, which collects late: bin/ndots gives it less, and then it is
    // 300 MiB.
    assert.ok(grown < 600 * 1024 * 1024, `${grown >> 20} MiB`);
  });

  test('lists of objects that are not stored end as well', async () => {
    const only = wanted.filter(({ kind }) => kind === 'Pod');
    const nothing = { item: null, bytes: 0 };
    const lists = await readObjects(endless(10), only, new AbortController().signal, () => nothing);
    assert.equal(lists[0]!.cutAt, 200_000);
  });
});

test('a page that is too large is asked for again in smaller pieces', async () => {
  const asked: string[] = [];
  const only = wanted.filter(({ kind }) => kind === 'ConfigMap');
  const [list] = await readObjects(endless(1_000_000, asked), only, new AbortController().signal);
  assert.deepEqual(asked.slice(0, 5), [
    'configmaps 500',
    'configmaps 100',
    'configmaps 20',
    'configmaps 4',
    'configmaps 4',
  ]);
  assert.equal(list!.failure, null);
  assert.ok(list!.items.length > 10, String(list!.items.length));
});
