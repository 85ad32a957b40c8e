import assert from 'node:assert/strict';
import { test } from 'node:test';
import { examine } from '../../../../test/kit/story.ts';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';

const [POD, NODE, UPSTREAM] = ['10.244.2.8', '192.168.50.12', '10.0.0.2'] as const;

/** On the node: half of the pod's queries leave, translated. @param ports of the translation */
async function codesOf(ports: number): Promise<readonly string[]> {
  const packets = Array.from({ length: 300 }, (_, i) => {
    const [atMs, name] = [i * 100, `n${i}.example.com.`];
    const way = ends(POD, 33_000 + i * 7, UPSTREAM);
    if (i > 60 && i % 2 === 0) return asked(atMs, way, name, i, { tookMs: null });
    const out = ends(NODE, 61_000 + ((i * 11) % ports), UPSTREAM);
    return [
      ...asked(atMs, way, name, i, { tookMs: 300 }),
      ...asked(atMs + 0.1, out, name, i, { tookMs: 299.8 }),
    ];
  });
  const { findings } = await examine(inOrder(packets));
  return findings.map(({ code }) => code);
}

test('queries leave the node from eight ports only, and the others are dropped', async () => {
  assert.equal((await codesOf(8))[0], 'ND3024');
});

test('all of a few dozen ports are taken for good after some seconds', async () => {
  const packets = Array.from({ length: 160 }, (_, i) => {
    const [atMs, name] = [i * 100, `n${i}.example.com.`];
    const way = ends(POD, 33_000 + i * 7, UPSTREAM);
    if (i >= 48) return asked(atMs, way, name, i, { tookMs: null });
    const out = ends(NODE, 61_000 + i, UPSTREAM);
    return [
      ...asked(atMs, way, name, i, { tookMs: 30 }),
      ...asked(atMs + 0.1, out, name, i, { tookMs: 29.8 }),
    ];
  });
  const [first] = (await examine(inOrder(packets))).findings;
  assert.equal(first?.code, 'ND3024');
});

test('queries leave from many ports', async () => {
  assert.ok(!(await codesOf(28_000)).includes('ND3024'));
});
