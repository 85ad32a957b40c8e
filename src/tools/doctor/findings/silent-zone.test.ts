import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Captured } from '../../../../test/kit/packets.ts';
import { examine } from '../../../../test/kit/story.ts';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';
import type { Finding } from './finding.ts';

const [RESOLVER, NODE] = ['172.31.2.2', '10.0.1.11'];

/** At a resolver that asks two servers of a zone and one of another zone. @param silent those without replies after ten seconds */
function atResolver(silent: readonly string[]): readonly Captured[] {
  return inOrder(
    Array.from({ length: 60 }, (_, i) => {
      const [atMs, port] = [i * 700, 30_000 + i];
      const isOwn = i % 3 > 0;
      const name = isOwn ? `t${i % 4}.freight.example.` : `n${i % 9}.other.example.`;
      const server = isOwn ? `203.0.113.5${i % 3}` : '198.51.100.7';
      const tookMs = silent.includes(server) && atMs > 10_000 ? null : 20;
      return [
        ...asked(atMs - 1, ends(NODE, port, RESOLVER), name, port, {
          tookMs: tookMs ?? 3000,
          rcode: tookMs === null ? 2 : 0,
        }),
        ...asked(atMs, ends(RESOLVER, port, server), name, port + 1, { tookMs }),
      ];
    }),
  );
}

const first = async (packets: readonly Captured[]): Promise<Finding | undefined> =>
  (await examine(packets)).findings[0];

test('a zone whose servers have all stopped answering is reported with its servers', async () => {
  const found = await first(atResolver(['203.0.113.51', '203.0.113.52']));
  assert.equal(found!.code, 'ND3029');
  assert.match(
    found!.seen[0]!,
    /^The 2 servers of freight\.example\. seen here \(203\.0\.113\.5\d, 203/,
  );
});

test('a zone with one answering server is not dead', async () => {
  assert.notEqual((await first(atResolver(['203.0.113.51'])))?.code, 'ND3029');
  assert.notEqual((await first(atResolver([])))?.code, 'ND3029');
});
