import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { printData } from '../wire/print.ts';
import { FLAG } from '../wire/iana.ts';
import { makeWorld } from '../../../test/kit/world.ts';

test('for a name with thousands of addresses, each client gets different ones, as many as it can receive', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-zone-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const many = Array.from({ length: 3000 }, (_, i) => `many A 10.0.${i >> 8}.${i & 255}`);
  const more = Array.from({ length: 1500 }, (_, i) => `10.0.${i >> 8}.${i & 255} more.hosts.test`);
  writeFileSync(
    join(directory, 'db'),
    ['$ORIGIN shop.test.', '@ SOA ns mail 1 2 3 4 5', ...many, ''].join('\n'),
  );
  const world = await makeWorld(
    `shop.test {\n loadbalance\n file db\n}\nhosts.test {\n loadbalance\n hosts {\n ${more.join('\n ')}\n }\n}`,
    { directory },
  );
  for (const [name, all] of [
    ['many.shop.test', 3000],
    ['more.hosts.test', 1000],
  ] as const) {
    const seen = new Set<string>();
    for (let i = 0; i < 60; i++) {
      const { answer, flags } = await world.ask(`${name}. A`, { udpSize: i % 2 === 0 ? 0 : 4096 });
      assert.ok((flags & FLAG.TC) !== 0);
      assert.ok(answer.length >= 29 && answer.length <= 75, String(answer.length));
      for (const record of answer) seen.add(printData(record.type, record.data));
    }
    assert.ok(seen.size > all / 2, `${name} ${seen.size}`);
    const whole = await world.ask(`${name}. A`, { proto: 'tcp' });
    assert.equal(whole.answer.length, all);
  }
  await world.close();
});
