import assert from 'node:assert/strict';
import { test } from 'node:test';
import { examine } from '../../../../test/kit/story.ts';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';
import type { Finding } from './finding.ts';

/** Two forwarders at an upstream that answers all; health checks every half second, or none. */
async function atUpstream(from: string, hasChecks: boolean): Promise<Finding | undefined> {
  let id = 0;
  const query = (ms: number, client: string, name: string, type: string) =>
    asked(ms, ends(client, 20_000 + ++id, '10.0.0.2'), name, id, { type, tookMs: 3 });
  const packets = ['23', '53'].flatMap((last) =>
    Array.from({ length: 20 }, (_, i) => [
      ...query(i * 2000, `${from}.${last}`, `n${i >> 2}.example.com.`, 'A'),
      ...(hasChecks
        ? [0, 500, 1000].flatMap((ms) => query(i * 2000 + 100 + ms, `${from}.${last}`, '.', 'NS'))
        : []),
    ]),
  );
  const { findings } = await examine(inOrder(packets));
  return findings.find(({ code }) => code === 'ND3021');
}

test('answered health checks that go on show that no reply arrives, and pod addresses the reason', async () => {
  assert.match((await atUpstream('10.244.1', true))?.why ?? '', /masquerade/);
  assert.doesNotMatch((await atUpstream('10.0.7', true))?.why ?? 'none', /masquerade|none/);
});

test('questions that are asked again without health checks show nothing', async () => {
  assert.equal(await atUpstream('10.244.1', false), undefined);
});
