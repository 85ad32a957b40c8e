import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE } from '../../../server/wire/iana.ts';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';
import { examine } from '../../../../test/kit/story.ts';

const SERVICE = '10.96.0.10';
const external = ['api.stripe.com.', 'hooks.slack.com.'] as const;

test('two external names without a reply, while cluster names are answered, are not a dead DNS pod', async () => {
  let port = 20_000;
  const way = () => ends('10.244.1.21', (port += 7), SERVICE);
  const packets = Array.from({ length: 4 }, (_, nth) => {
    const [atMs, name] = [nth * 12_000, external[nth % 2]!];
    const walked = ['shop.svc.cluster.local.', 'svc.cluster.local.', 'cluster.local.'].map(
      (domain, step) =>
        asked(atMs + step, way(), `${name}${domain}`, port, { rcode: RCODE.NXDOMAIN }),
    );
    const last = way();
    return [
      ...walked,
      asked(atMs + 4, last, name, port, { tookMs: null }),
      asked(atMs + 5004, last, name, port, { tookMs: null }),
      asked(atMs + 10_100, way(), 'cart.shop.svc.cluster.local.', port),
    ].flat();
  });
  const end = asked(60_000, way(), 'cart.shop.svc.cluster.local.', 7);
  const [first, ...others] = (await examine(inOrder([...packets, end]))).findings;
  assert.equal(first?.code, 'ND3010');
  assert.match(first.title, /External names/);
  assert.match(first.why, /its upstream/);
  assert.ok(!others.some(({ code }) => code === 'ND3008'));
});
