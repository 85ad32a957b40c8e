import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ProbeContext } from '../check.ts';
import { suffixHazards } from './suffix-hazards.ts';

for (const [what, failure, told] of [
  [
    'a closed port',
    'no server listens at 127.0.0.1:9',
    /glibc and Go fail immediately here, while musl waits/,
  ],
  ['a server that is silent', 'no reply in 2 s', /every client waits here until its timeout/],
] as const)
  test(`how clients handle ${what}`, async () => {
    const none = { reply: null, size: 0, tookMs: null, sent: 1, lost: 1, failure };
    const context = {
      vip: [{ host: '127.0.0.1', port: 9 }],
      search: ['cluster.local'],
      random: { integer: () => 1 },
      network: { ask: () => Promise.resolve([none]) },
      timeoutMs: 1000,
      tries: 1,
    } as unknown as ProbeContext;
    const [found] = await suffixHazards.prepare({ suffixes: [], name: 'www.example.com.' })(
      context,
    );
    assert.match(found!.text, told);
  });
