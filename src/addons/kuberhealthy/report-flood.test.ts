import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { Lead } from '../../../test/kit/check-lead.ts';
import { CheckApi } from '../../../test/kit/check-api.ts';
import { child, text, type JsonObject } from '../../server/base/json-object.ts';
import type { VirtualClock } from '../../server/base/virtual-clock.ts';
import type { ReportAnswer } from './report-intake.ts';

describe('many reports', () => {
  let lead: Lead;
  let clock: VirtualClock;
  let api: CheckApi;

  beforeEach(async () => {
    api = new CheckApi();
    api.put('khchecks', 'old', { spec: { runInterval: '1h', timeout: '5m' } });
    lead = new Lead(api);
    ({ clock } = lead);
    await lead.begin();
  });
  afterEach(() => lead.end());

  const report = (run: string, from: string, ...errors: string[]): Promise<ReportAnswer> =>
    lead.reportFrom(from, 2, run, ...errors);
  const runNow = (): string => text(child(api.get('khstates', 'old')!, 'spec'), 'uuid');
  const statuses = async (sent: readonly Promise<ReportAnswer>[]): Promise<Map<number, number>> => {
    const counts = new Map<number, number>();
    for (const { status } of await Promise.all(sent))
      counts.set(status, (counts.get(status) ?? 0) + 1);
    return counts;
  };

  async function schedule(more: object = {}): Promise<void> {
    const [pod] = api.all('pods') as [JsonObject];
    const status = { phase: 'Running', podIP: '10.1.0.7' };
    const spec = { ...child(pod, 'spec'), nodeName: 'node-3', ...more };
    const changed = { ...pod, spec, status } as unknown as JsonObject;
    api.put('pods', text(child(pod, 'metadata'), 'name'), changed);
    await clock.advance(100);
  }

  test('10 000 reports without a run cause no API requests, from any address', async () => {
    await schedule();
    const before = api.asked.length;
    const sent = Array.from({ length: 10_000 }, () => report('', '10.1.9.9'));
    await clock.advance(5000);
    const counts = await statuses(sent);
    assert.deepEqual(new Set(counts.keys()), new Set([400, 503]));
    assert.equal(api.asked.length, before);
    const taken = report('', '10.1.0.7', 'no answer');
    await clock.advance(100);
    assert.equal((await taken).status, 200);
    const state = child(api.get('khstates', 'old')!, 'spec');
    assert.deepEqual(state['Errors'], ['no answer']);
    assert.equal(state['Node'], 'node-3', 'where its pod ran');
  });

  test('a pod on the host network has no address of its own', async () => {
    await schedule({ hostNetwork: true });
    const sent = report('', '10.1.0.7');
    await clock.advance(5000);
    assert.equal((await sent).status, 400);
  });

  test('a flood of unknown runs does not displace reports that wait for a new run', async () => {
    const flood = Array.from({ length: 1000 }, () => report(randomUUID(), '10.1.9.9'));
    api.put('khchecks', 'late', { spec: { runInterval: '1h', timeout: '5m' } });
    const run = randomUUID();
    const waits = report(run, '10.1.0.8');
    await clock.advance(500);
    const state = { spec: { OK: true, uuid: run, LastRun: '2030-01-01T00:00:00Z' } };
    api.put('khstates', 'late', state as unknown as JsonObject);
    const metadata = {
      labels: { 'kuberhealthy-run-id': run, 'kuberhealthy-check-name': 'late' },
      ownerReferences: [{ uid: 'uid-khchecks-late' }],
    };
    const status = { phase: 'Running', podIP: '10.1.0.8' };
    api.put('pods', 'late', { metadata, status } as unknown as JsonObject);
    await clock.advance(5000);
    assert.equal((await waits).status, 200);
    assert.deepEqual(
      await statuses(flood),
      new Map([
        [503, 996],
        [400, 4],
      ]),
    );
  });

  test('a repeated report is written once', async () => {
    const run = runNow();
    const first = report(run, '10.1.0.7', 'no answer');
    await clock.advance(100);
    await first;
    const before = api.asked.length;
    const sent = Array.from({ length: 10_000 }, () => report(run, '10.1.0.7', 'no answer'));
    await clock.advance(5000);
    assert.deepEqual(await statuses(sent), new Map([[200, 10_000]]));
    assert.equal(api.asked.length, before);
  });

  test('a run with changing reports is written a few times, then once a second', async () => {
    const run = runNow();
    const before = api.count(/^PATCH khstates/);
    let count = 0;
    const sent: Promise<ReportAnswer>[] = [];
    for (let second = 0; second < 10; second++) {
      for (let each = 0; each < 1000; each++) sent.push(report(run, '10.1.0.7', `no ${count++}`));
      await clock.advance(1000);
    }
    const counts = await statuses(sent);
    const written = api.count(/^PATCH khstates/) - before;
    assert.ok(written >= 10 && written <= 22, `${written} changes`);
    assert.equal(counts.get(200), written);
    assert.equal(counts.get(503), 10_000 - written);
  });

  for (const trouble of ['away', 'hanging', 'answering 500', 'answering 429'] as const)
    test(`reports of one run while the API server is ${trouble}: some wait for it, and each is tried once a second`, async () => {
      const run = runNow();
      const before = api.asked.length;
      if (trouble === 'away') api.isAway = true;
      else if (trouble === 'hanging') api.hangs = true;
      else api.refusesWith = Number(trouble.slice(-3));
      const sent = Array.from({ length: 1000 }, (_, index) =>
        report(run, '10.1.0.7', `no ${index}`).catch(() => ({ status: 500 }) as never),
      );
      await clock.advance(10_000);
      assert.ok(api.asked.length - before <= 15, `${api.asked.length - before} requests`);
      api.isAway = false;
      api.hangs = false;
      api.refusesWith = 0;
      const ended = lead.end();
      await clock.advance(100);
      await Promise.all([ended, ...sent]);
    });
});
