import assert from 'node:assert/strict';
import { test } from 'node:test';
import { examine } from '../../../../test/kit/story.ts';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';

const [POD, NODE, UPSTREAM] = ['10.244.2.8', '192.168.50.12', '10.0.0.2'] as const;

/**
 * On the node: half of the pod's queries leave, translated. @param ports of the translation
 */
async function codesOf(
  ports: number,
  nameOf = (i: number) => `n${i}.example.com.`,
  rcode = 0,
): Promise<readonly string[]> {
  const packets = Array.from({ length: 300 }, (_, i) => {
    const [atMs, name] = [i * 100, nameOf(i)];
    const way = ends(POD, 33_000 + i * 7, UPSTREAM);
    if (i > 60 && i % 2 === 0) return asked(atMs, way, name, i, { tookMs: null });
    const out = ends(NODE, 61_000 + ((i * 11) % ports), UPSTREAM);
    return [
      ...asked(atMs, way, name, i, { tookMs: 300, rcode }),
      ...asked(atMs + 0.1, out, name, i, { tookMs: 299.8, rcode }),
    ];
  });
  const { findings } = await examine(inOrder(packets));
  return findings.map(({ code }) => code);
}

test('queries leave the node from eight ports only, and the others are dropped', async () => {
  assert.equal((await codesOf(8))[0], 'ND3024');
});

test('the ports are the cause, and a flood of names that needs them comes after it', async () => {
  const random = (i: number): string => `${((i + 1) * 0x9e3779b1).toString(36)}.shop.example.`;
  assert.deepEqual((await codesOf(8, random, 3)).slice(0, 2), ['ND3024', 'ND2018']);
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
