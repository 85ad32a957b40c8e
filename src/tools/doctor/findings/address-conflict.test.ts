import assert from 'node:assert/strict';
import { test } from 'node:test';
import { icmpError } from '../../../../test/kit/packets.ts';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';
import { look } from '../../../../test/kit/story.ts';
import { diagnose } from '../diagnosis.ts';
import { everything } from '../part-diagnosis.ts';
import type { Finding } from './finding.ts';

const [POD, UPSTREAM] = ['10.244.1.58', '10.0.0.2'];

/**
 * A forwarder whose queries are rejected in every second stretch of five seconds.
 * @param claims last bytes of hardware addresses
 * @param address the one that they claim
 * @param losesOwn the forwarder does not answer at these times
 */
function found(claims: readonly number[], address = [10, 0, 0, 2], losesOwn = false): Finding {
  const packets = inOrder(
    Array.from({ length: 60 }, (_, i) => {
      const way = ends(POD, 33_000 + i, UPSTREAM);
      const isRejected = Math.floor(i / 10) % 2 === 1;
      const exchange = asked(i * 500, way, `n${i}.example.com.`, i + 1, {
        tookMs: isRejected ? null : 3,
      });
      const [{ timeMs, bytes }] = exchange as [(typeof exchange)[0]];
      const own = asked(
        i * 500,
        ends('10.244.1.5', 41_000 + i, POD),
        'db.shop.svc.cluster.local.',
        i,
        losesOwn && isRejected ? { tookMs: null } : {},
      );
      return isRejected
        ? [
            ...own,
            ...exchange,
            { timeMs: timeMs + 1, bytes: icmpError(UPSTREAM, bytes, 3, 3, POD) },
          ]
        : [...own, ...exchange];
    }),
  );
  const [observed] = look(packets, [], [everything]);
  for (const last of claims)
    observed!.neighbour(0, true, Uint8Array.of(...address, 2, 0, 0, 0, 0, last), 0, 4, 0, 4);
  return diagnose(observed!).findings[0]!;
}

test('an address that two hosts claim in turn, one of which rejects queries, is a conflict', () => {
  const { code, seen } = found([1, 2, 1, 2]);
  assert.equal(code, 'ND3027');
  assert.match(seen[0]!, /02:00:00:00:00:01, 02:00:00:00:00:02\. The claim changed 3 times/);
});

test('an address that moved once, or has one host whose port is closed at times, is not a conflict', () => {
  for (const claims of [[], [1, 1, 1], [1, 1, 2, 2]]) {
    const { code, title } = found(claims);
    assert.equal(code, 'ND3007');
    assert.match(title, /upstream rejects/);
  }
});

test('the losses of a server that also forwards are counted among the queries in both directions', () => {
  const { seen } = found([1, 2, 1, 2], [10, 244, 1, 58], true);
  assert.match(seen[1]!, /^48 of 108 \(44 %\) queries to or from 10\.244\.1\.58 got no reply/);
});

test('the address of a node-local cache, which the node claims on each link, is not a conflict', () => {
  assert.notEqual(found([1, 2, 1, 2], [169, 254, 20, 10]).code, 'ND3027');
});
