import assert from 'node:assert/strict';
import { test } from 'node:test';
import { icmpError } from '../../../../test/kit/packets.ts';
import { asked, at, ends, inOrder } from '../../../../test/kit/story-parts.ts';
import { examine } from '../../../../test/kit/story.ts';

test('a name server at a loopback address of the pod leads to the resolv.conf of the node', async () => {
  const packets = Array.from({ length: 30 }, (_, i) => {
    const way = ends('127.0.0.1', 40_000 + i, '127.0.0.53');
    const [query] = asked(i * 700, way, 'api.example.com.', i + 1, { tookMs: null });
    return [query!, at(i * 700 + 0.01, icmpError('127.0.0.53', query!.bytes, 3, 3, '127.0.0.1'))];
  });
  const { findings } = await examine(inOrder(packets));
  const [found] = findings;
  assert.equal(found?.code, 'ND3005');
  assert.match(found.title, /loopback address/);
  assert.match(found.why, /127\.0\.0\.53 is the stub of systemd-resolved/);
  assert.match(found.fix[0]!, /^Set dnsPolicy: ClusterFirst/);
  assert.match(found.fix[1]!, /resolvConf/);
  assert.doesNotMatch(found.fix.join(' '), /endpointslices/);
});
