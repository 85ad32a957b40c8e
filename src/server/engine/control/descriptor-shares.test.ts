import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { usualLimits } from '../../transport/limits/limits.ts';
import type { EndpointPlan } from '../contract/endpoints.ts';
import { httpShare, sourcePortShare, withinDescriptors } from './descriptor-shares.ts';

const endpoint = (
  scheme: EndpointPlan['scheme'],
  address: string,
  connections: number,
): EndpointPlan => ({
  server: `${scheme}://${address}:53`,
  scheme,
  address,
  port: 53,
  limits: { ...usualLimits, connections },
  tls: null,
  proxy: null,
  zones: [],
});
const plans = [endpoint('dns', '', 4096), endpoint('tls', '10.0.0.1', 1024)];

describe('descriptors', () => {
  test("a container's usual number changes no limit", () => {
    const { endpoints, warning } = withinDescriptors(plans, 2, 65_536);
    assert.equal(endpoints, plans);
    assert.equal(warning, null);
    assert.ok(httpShare(65_536) > 256);
    assert.equal(withinDescriptors(plans, 2, Infinity).warning, null);
  });

  test('if there are few, the connections of all listeners, including handshakes, take half of the free ones', () => {
    for (const limit of [128, 256, 1024, 4096]) {
      for (const workers of [1, 2]) {
        const { endpoints, warning } = withinDescriptors(plans, workers, limit);
        const [plain, tls] = endpoints.map(({ limits }) => limits);
        const taken = workers * (2 * plain!.connections + tls!.connections + tls!.handshakes);
        assert.ok(taken <= (limit - 48) / 2, `${taken} of ${limit}`);
        assert.ok(plain!.connections > 0 && tls!.connections > 0 && tls!.handshakes > 0);
        assert.match(warning!, new RegExp(`may open ${limit} descriptors`));
        assert.ok(workers * sourcePortShare(limit, workers) <= Math.max(4, (limit - 48) / 8));
        assert.ok(3 * httpShare(limit) <= (limit - 48) / 4);
      }
    }
  });

  test('fewer than the process itself needs leave each listener two connections', () => {
    const { endpoints } = withinDescriptors(plans, 1, 32);
    assert.deepEqual(
      endpoints.map(({ limits }) => limits.connections),
      [2, 1],
    );
    assert.equal(httpShare(32), 2);
  });

  test('an infinite limit is lowered, too', () => {
    const [fitting] = withinDescriptors([endpoint('https', '::1', Infinity)], 1, 1024).endpoints;
    assert.ok(fitting!.limits.connections <= 488);
  });
});
