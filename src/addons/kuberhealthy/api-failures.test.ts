import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { child, text, type JsonObject } from '../../server/base/json-object.ts';
import { Lead } from '../../../test/kit/check-lead.ts';

describe('a failing API server', () => {
  let lead: Lead;
  beforeEach(() => {
    lead = new Lead();
  });
  afterEach(() => lead.end());

  const check = (name: string, spec: object = { runInterval: '30s', timeout: '20s' }): void =>
    lead.api.put('healthchecks', name, { spec } as unknown as JsonObject);
  const statusOf = (name: string): JsonObject =>
    child(lead.api.get('healthchecks', name)!, 'status');
  const pods = (): number => lead.api.count(/^POST pods/);

  for (const [status, retryAfterMs, most] of [
    [500, null, 16 * 13],
    [429, null, 16 * 13],
    [429, 30_000, 16 * 3],
  ] as const)
    test(`200 due checks and ${status} to every change${retryAfterMs === null ? '' : ', to be tried in 30 s'}: a few are tried, then there is a rest; when it is over all run`, async () => {
      for (let count = 0; count < 200; count++) check(`c${count}`, { timeout: '5m' });
      lead.api.refusesWith = status;
      lead.api.retryAfterMs = retryAfterMs;
      await lead.begin();
      const before = lead.api.asked.length;
      await lead.clock.advance(60_000);
      const asked = lead.api.asked.length - before;
      assert.ok(asked <= most, `${asked} requests in a minute`);
      const told = lead.lines.filter((line) => line.includes('running checks'));
      assert.ok(told.length <= 3, told.join('\n'));
      lead.api.refusesWith = 0;
      await lead.clock.advance(60_000);
      assert.equal(pods(), 200);
    });

  test('a state that could not be written at the end of the run is written later, and the check fails once', async () => {
    check('silent', { runInterval: '1h', timeout: '10s' });
    await lead.begin();
    lead.api.refusesWith = 500;
    await lead.clock.advance(60_000);
    assert.equal(statusOf('silent')['failureCount'], 0);
    lead.api.refusesWith = 0;
    await lead.clock.advance(10_000);
    assert.equal(statusOf('silent')['failureCount'], 1);
    assert.match(String(statusOf('silent')['errors']), /timed out after 10s/);
  });

  test('with two replicas that both believe they lead, each run has one pod, and either accepts its report', async () => {
    for (let count = 0; count < 20; count++) check(`c${count}`);
    const other = new Lead(lead.api, lead.clock);
    await Promise.all([lead.begin(), other.begin()]);
    await lead.clock.advance(5000);
    assert.equal(pods(), 20);
    const runs = new Set(lead.api.all('pods').map((pod) => runOf(pod)));
    for (let count = 0; count < 20; count++) {
      const run = text(statusOf(`c${count}`), 'currentUUID');
      assert.ok(runs.has(run), 'the run that is known is the one that has a pod');
      const taken = (count % 2 === 0 ? lead : other).report(3, run);
      await lead.clock.advance(100);
      assert.equal((await taken).status, 200);
    }
    await lead.clock.advance(30_000);
    assert.equal(pods(), 40);
    await other.end();
  });

  test('if a leader is killed between a run and its report, the next one accepts it, and the check continues', async () => {
    check('dns', { runInterval: '1m', timeout: '30s' });
    await lead.begin();
    const run = text(statusOf('dns'), 'currentUUID');
    await lead.end();
    const next = new Lead(lead.api, lead.clock);
    await next.begin();
    const taken = next.report(3, run);
    await lead.clock.advance(1000);
    assert.equal((await taken).status, 200);
    await lead.clock.advance(60_000);
    assert.equal(pods(), 2);
    await next.end();
  });
});

function runOf(pod: JsonObject): string {
  return text(child(child(pod, 'metadata'), 'labels'), 'kh-run-uuid');
}
