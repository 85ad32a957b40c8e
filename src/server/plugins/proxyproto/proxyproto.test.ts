import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeWorld } from '../../../../test/kit/world.ts';
import type { ProxyPlan } from '../../transport/proxy/proxy-policy.ts';

async function planned(
  directives: string,
): Promise<{ readonly plan: ProxyPlan | null; readonly log: string }> {
  const world = await makeWorld(`. {\n${directives}\n whoami\n}`);
  const { endpoints } = world.server;
  const log = world.log.join('\n');
  await world.close();
  return { plan: endpoints[0]!.proxy, log };
}

describe('proxyproto', () => {
  test('the client in each header', async () => {
    assert.equal((await planned('')).plan, null);
    const cases: readonly (readonly [string, number, string, number, number])[] = [
      ['proxyproto', 0, 'use', 0, 10_240],
      ['proxyproto {\n allow\n}', 0, 'use', 0, 10_240],
      ['proxyproto {\n allow 127.0.0.1/8 ::1/128\n allow 10.0.0.0/8\n}', 3, 'ignore', 0, 10_240],
      ['proxyproto {\n default reject\n}', 0, 'reject', 0, 10_240],
      ['proxyproto {\n allow 10.0.0.0/8\n default SKIP\n}', 1, 'skip', 0, 10_240],
      [
        'proxyproto {\n allow ::1/128\n default skip\n}\nproxyproto {\n allow 10.0.0.0/8\n}',
        2,
        'skip',
        0,
        10_240,
      ],
      ['proxyproto {\n udp_session_tracking 28s\n}', 0, 'use', 28_000, 10_240],
      ['proxyproto {\n udp_session_tracking 1m 500\n}', 0, 'use', 60_000, 500],
    ];
    for (const [directive, nets, others, sessionMs, sessions] of cases) {
      const { plan } = await planned(directive);
      assert.ok(plan !== null);
      assert.deepEqual(
        [plan.allow.length, plan.others, plan.sessionMs, plan.sessions],
        [nets, others, sessionMs, sessions],
        directive,
      );
    }
  });

  test('accepting headers from all sources causes a warning', async () => {
    assert.match((await planned('proxyproto')).log, /headers from all sources are accepted/);
    const { log } = await planned('proxyproto {\n allow 10.0.0.0/8\n}');
    assert.doesNotMatch(log, /every client/);
  });

  test("errors use CoreDNS's wording", async () => {
    const cases: readonly (readonly [string, RegExp])[] = [
      ['proxyproto extra', /[Ww]rong argument/],
      ['proxyproto {\n unknown\n}', /unknown/],
      ['proxyproto {\n allow nonsense\n}', /invalid CIDR address/],
      ['proxyproto {\n allow 10.0.0.1\n}', /invalid CIDR address/],
      ['proxyproto {\n default maybe\n}', /[Ww]rong argument/],
      ['proxyproto {\n udp_session_tracking\n}', /[Ww]rong argument/],
      ['proxyproto {\n udp_session_tracking 28s 1 2\n}', /[Ww]rong argument/],
      ['proxyproto {\n udp_session_tracking soon\n}', /invalid duration/],
      ['proxyproto {\n udp_session_tracking 28s 0\n}', /invalid max sessions/],
      ['proxyproto {\n udp_session_tracking 28s -1\n}', /invalid max sessions/],
    ];
    for (const [directive, message] of cases) await assert.rejects(planned(directive), message);
  });
});
