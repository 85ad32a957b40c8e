import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Captured } from '../../../../test/kit/packets.ts';
import { examine } from '../../../../test/kit/story.ts';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';

const [SERVICE, POD, NODE] = ['10.96.0.10', '10.244.2.54', '10.0.1.11'];

/** On a node: queries are translated to a pod, and from half a minute on they are lost. @param leaves where they are seen then */
function onNode(
  leaves: (client: string, port: number) => ReturnType<typeof ends> | null,
): Captured[] {
  return inOrder(
    Array.from({ length: 60 }, (_, i) => {
      const [atMs, port] = [i * 1000, 30_000 + i];
      const client = `10.244.1.${5 + (i % 3)}`;
      const name = `n${i % 7}.example.com.`;
      const way = ends(client, port, SERVICE);
      if (i < 30)
        return [
          ...asked(atMs, way, name, port, { tookMs: 1 }),
          ...asked(atMs + 0.1, ends(client, port, POD), name, port, { tookMs: 0.5 }),
        ];
      const out = leaves(client, port);
      const behind = out === null ? [] : asked(atMs + 0.1, out, name, port, { tookMs: null });
      return [
        ...asked(atMs, way, name, port, { tookMs: null }),
        ...behind.map((each) => ({ ...each, port: 2 })),
      ];
    }),
  );
}

const first = async (packets: readonly Captured[]): Promise<string> =>
  (await examine(packets)).findings[0]!.title;

test('queries that leave the node for the service’s own address show missing rules', async () => {
  const masqueraded = onNode((_, port) => ends(NODE, port, SERVICE));
  assert.match(await first(masqueraded), /A node does not translate/);
});

test('queries that are taken to a pod, or seen nowhere else, show no missing rules', async () => {
  for (const leaves of [(client: string, port: number) => ends(client, port, POD), () => null])
    assert.doesNotMatch(await first(onNode(leaves)), /translate/);
});
