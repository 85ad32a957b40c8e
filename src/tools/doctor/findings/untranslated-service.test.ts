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

test('queries that leave the node still addressed to the Service show missing rules', async () => {
  const masqueraded = onNode((_, port) => ends(NODE, port, SERVICE));
  assert.match(await first(masqueraded), /A node does not translate/);
});

test('queries that reach a pod, or are seen nowhere else, do not show missing rules', async () => {
  for (const leaves of [(client: string, port: number) => ends(client, port, POD), () => null])
    assert.doesNotMatch(await first(onNode(leaves)), /translate/);
});

test('an address that is never translated, while the Service’s is, is a wrong name server', async () => {
  const other = '10.32.0.10';
  const walks = Array.from({ length: 60 }, (_, i) => {
    const [atMs, port, name] = [i * 1000, 30_000 + i, `n${i % 7}.example.com.`];
    const out = asked(atMs + 0.1, ends(NODE, port, other), name, port, { tookMs: null });
    const again = atMs + 500;
    return [
      ...asked(atMs, ends('10.244.1.5', port, other), name, port, { tookMs: null }),
      ...out.map((each) => ({ ...each, port: 2 })),
      ...asked(again, ends('10.244.1.5', port, SERVICE), name, port, { tookMs: 1 }),
      ...asked(again + 0.1, ends('10.244.1.5', port, POD), name, port, { tookMs: 0.5 }),
    ];
  });
  const [found] = (await examine(inOrder(walks))).findings;
  assert.equal(found?.code, 'ND3005');
  assert.doesNotMatch(found.title, /does not translate/);
});

/** On a node: a DNS pod asks an upstream, masqueraded for half a minute. @param later the source that its queries leave with after that */
function forwarding(later: string): readonly Captured[] {
  const [dns, upstream] = ['10.244.1.9', '10.0.0.2'];
  return inOrder(
    Array.from({ length: 60 }, (_, i) => {
      const [atMs, port, name] = [i * 1000, 30_000 + i, `n${i}.example.com.`];
      const tookMs = i < 30 ? 5 : null;
      const out = asked(atMs + 0.1, ends(i < 30 ? NODE : later, port, upstream), name, port, {
        tookMs: i < 30 ? 4 : null,
      });
      const own = asked(atMs, ends('10.244.1.5', port, dns), 'db.shop.svc.cluster.local.', port);
      return [
        ...own,
        ...asked(atMs, ends(dns, port, upstream), name, port, { tookMs }),
        ...out.map(({ timeMs, bytes }, at) => {
          const routed = Uint8Array.from(bytes);
          if (at === 0) routed[8]!--;
          return { timeMs, bytes: routed, port: 2 };
        }),
      ];
    }),
  );
}

test('a DNS pod’s queries that start to leave with its own address lack source NAT', async () => {
  assert.match(await first(forwarding('10.244.1.9')), /no longer masquerades/);
  assert.doesNotMatch(await first(forwarding(NODE)), /masquerades/);
});
