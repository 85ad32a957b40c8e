import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Recognition } from '../../src/tools/capture/fingerprint/recognition.ts';
import type { SeenLookup } from '../../src/tools/capture/pair/seen-exchange.ts';
import { Reading } from '../../src/tools/capture/read/reading.ts';
import { ClientResolvers } from '../../src/tools/watch/client-resolvers.ts';
import { readMeasured } from '../kit/measured.ts';
import { recordedPackets } from '../kit/recorded-capture.ts';
import { settledMemory } from '../kit/settled-memory.ts';

const CLIENTS = 2000;

test('a client takes no more memory for the recognition of its resolver than is budgeted', async (t) => {
  const lookups: SeenLookup[] = [];
  const reading = new Reading({ lookup: (lookup) => lookups.push(lookup) });
  const run = readMeasured()
    .flatMap(({ runs }) => runs)
    .find(({ client, queries }) => client.startsWith('glibc') && queries.length > 3)!;
  for (const { bytes, timeMs } of recordedPackets(run.queries, '10.244.0.9', 1.7e12))
    reading.takeNetwork(bytes, 0, bytes.length, timeMs, 0);
  reading.end();
  assert.ok(lookups.length > 0);
  const before = await settledMemory();
  const known = Array.from({ length: CLIENTS }, () => new Recognition());
  for (let turn = 0; turn < 64; turn++)
    for (const recognition of known) for (const lookup of lookups) recognition.add(lookup);
  const each = ((await settledMemory()) - before) / CLIENTS;
  t.diagnostic(`${each.toFixed(0)} bytes per client`);
  assert.ok(known.every(({ best }) => best !== null));
  const budget = ClientResolvers.limitBytes(1);
  assert.ok(each <= budget, `${each.toFixed(0)} bytes per client instead of ${budget}`);
});
