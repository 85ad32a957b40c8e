import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Captured } from '../../../../test/kit/packets.ts';
import { examine } from '../../../../test/kit/story.ts';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';

const [PROXY, OTHER, SERVICE] = ['10.244.1.21', '10.244.1.28', '10.96.0.10'];
const names = ['orders.shop.svc.cluster.local.', 'payments.shop.svc.cluster.local.'];

/** A proxy with one socket: three rounds are answered, then two queries are repeated under their ids. */
function keptSocket(portOf: (round: number) => number = () => 55_299): readonly Captured[] {
  return inOrder(
    Array.from({ length: 8 }, (_, round) =>
      names.flatMap((name, i) => {
        const isAnswered = round < 3;
        const id = 100 + i + 2 * Math.min(round, 3);
        return asked(round * 4000 + i, ends(PROXY, portOf(round), SERVICE), name, id, {
          tookMs: isAnswered ? 0.6 : null,
        });
      }),
    ),
  );
}

/** Another pod that opens a socket for each query, and is answered. */
const answered = Array.from({ length: 60 }, (_, i) =>
  asked(i * 550, ends(OTHER, 41_000 + i, SERVICE), names[i % 2]!, 9000 + i),
).flat();

test('a few queries repeated on one socket for a long time show a stale entry if others are answered', async () => {
  const [first] = (await examine(inOrder([keptSocket(), answered]))).findings;
  assert.equal(first?.code, 'ND3002');
  assert.match(first.seen[0]!, /next 2 got no reply, nor did any of their 8 repeats/);
});

test('the same seen only from the pod is less certain', async () => {
  const [first] = (await examine(keptSocket())).findings;
  assert.equal(first?.code, 'ND3002');
  assert.ok(first.confidence < 0.8);
});

test('a pod whose new sockets also get no reply has no stale entry', async () => {
  const { findings } = await examine(keptSocket((round) => 55_000 + round));
  assert.ok(!findings.some(({ code }) => code === 'ND3002'));
});

test('sockets that lose all queries of an overloaded server are not stale', async () => {
  const busy = Array.from({ length: 160 }, (_, i) =>
    asked(i * 200, ends(OTHER, 41_000 + i, SERVICE), names[i % 2]!, 9000 + i, {
      tookMs: i * 200 < 10_000 ? 1 : i % 3 === 0 ? null : 1800,
    }),
  ).flat();
  const { findings } = await examine(inOrder([keptSocket(), busy]));
  assert.ok(!findings.some(({ code }) => code === 'ND3002'));
});

test('a socket that loses a few queries of a server that drops half of all new ones is not stale', async () => {
  const limited = Array.from({ length: 160 }, (_, i) =>
    asked(i * 200, ends(OTHER, 41_000 + i, SERVICE), names[i % 2]!, 9000 + i, {
      tookMs: i * 200 >= 10_000 && i % 3 !== 0 ? null : 1,
    }),
  ).flat();
  const { findings } = await examine(inOrder([keptSocket(), limited]));
  assert.ok(!findings.some(({ code }) => code === 'ND3002'));
});
