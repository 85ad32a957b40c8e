import assert from 'node:assert/strict';
import { test } from 'node:test';
import { given, others, type Given } from '../../../../test/kit/given-answers.ts';
import type { Captured } from '../../../../test/kit/packets.ts';
import { inOrder } from '../../../../test/kit/story-parts.ts';
import { examine } from '../../../../test/kit/story.ts';

/** Ten queries, each with a second reply to the same socket and id. */
async function twice(second: string): Promise<readonly string[]> {
  const asked = (address: string, tookMs: number): Captured[] =>
    given(
      Array.from({ length: 10 }, (_, i): Given => ({
        ...{ atMs: i * 1000, name: 'www.example.com.', address, reply: { tookMs } },
      })),
    );
  const replies = asked(second, 30).filter((_, nth) => nth % 2 === 1);
  const all = inOrder([asked('198.51.100.250', 5), replies, given(others(10))]);
  return (await examine(all)).findings.map(({ code }) => code);
}

test('a second reply with another address is a forgery of one of the two', async () => {
  assert.equal((await twice('203.0.113.195'))[0], 'ND4040');
});

test('a second reply with the same address is a copy', async () => {
  assert.ok(!(await twice('198.51.100.250')).includes('ND4040'));
});
