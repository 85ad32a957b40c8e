import assert from 'node:assert/strict';
import { test } from 'node:test';
import { examine } from '../../../../test/kit/story.ts';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';

const PODS = ['10.244.1.11', '10.244.2.12', '10.244.2.13'] as const;

/** On a node: queries from new sockets to the three pods in turn. @param took milliseconds; null: lost */
async function first(tookMs: (i: number, pod: number) => number | null) {
  const packets = Array.from({ length: 600 }, (_, i) => {
    const [atMs, port, pod] = [i * 70, 20_000 + i, i % 3];
    const name = `s${i % 40}.shop.svc.cluster.local.`;
    const took = tookMs(i, pod);
    const client = `10.244.1.${60 + (i % 2)}`;
    return [
      ...asked(atMs, ends(client, port), name, i, { tookMs: took === null ? null : took + 0.2 }),
      ...asked(atMs + 0.1, ends(client, port, PODS[pod]), name, i, { tookMs: took }),
    ];
  });
  const { findings } = await examine(inOrder(packets));
  return findings[0];
}

/** Spreads losses over all clients and moments. */
const isFifth = (i: number): boolean => (i * 7919) % 101 < 20;

test('a part is lost to the pods of one node, and nothing to the pod of another', async () => {
  const found = await first((i, pod) => (pod > 0 && isFifth(i) ? null : 0.6));
  assert.equal(found?.code, 'ND3013');
  assert.match(found.title, /some DNS pods/);
  assert.match(found.seen[0]!, /10\.244\.2\.12 .* 10\.244\.2\.13 .*, but 10\.244\.1\.11 0 of 200/);
});

test('as much is lost to all pods: it does not go by the pod', async () => {
  const found = await first((i) => (isFifth(i) ? null : 0.6));
  assert.doesNotMatch(found!.title, /some DNS pods/);
});

test('one pod is late with cluster names, and the others are not', async () => {
  const found = await first((i, pod) => (pod === 1 && i > 150 ? 600 + (i % 9) * 50 : 0.6));
  assert.equal(found?.code, 'ND7001');
  assert.match(found.title, /^One DNS pod is starved/);
  assert.match(found.seen[0]!, /10\.244\.2\.12 took/);
});

test('all pods are late: it is not one of them', async () => {
  const found = await first((i) => (i > 150 ? 600 + (i % 9) * 50 : 0.6));
  assert.doesNotMatch(found!.title, /^One DNS pod is starved/);
});
