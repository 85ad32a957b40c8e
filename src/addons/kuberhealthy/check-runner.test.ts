import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { CheckApi } from '../../../test/kit/check-api.ts';
import { Lead } from '../../../test/kit/check-lead.ts';
import { sleep } from '../../server/base/clock.ts';
import { child, text, type JsonObject } from '../../server/base/json-object.ts';
import { VirtualClock } from '../../server/base/virtual-clock.ts';
import type { CheckRunnerParts } from './check-runner.ts';
import type { ReportAnswer } from './report-intake.ts';

/** A clock whose wall time a test can set, as an administrator might. */
class SettableClock extends VirtualClock {
  setByMs = 0;

  override wall(): number {
    return super.wall() + this.setByMs;
  }
}

describe('the leading replica', () => {
  let clock: SettableClock;
  let api: CheckApi;
  let replica: Lead | null;

  beforeEach(() => {
    clock = new SettableClock();
    api = new CheckApi();
    replica = null;
  });
  afterEach(() => replica?.end());

  const retention = { completed: 1, failed: 2, failedMs: 3_600_000, jobsMs: 900_000 };

  async function lead(terms: Partial<Pick<CheckRunnerParts, 'runOwn'>> = {}): Promise<void> {
    replica = new Lead(api, clock, { ...terms, retention });
    await replica.begin();
  }

  const check = (name: string, spec: object, annotations: object = {}, status: object = {}): void =>
    api.put('healthchecks', name, { spec, status } as unknown as JsonObject, annotations);
  const status = (name: string): JsonObject => child(api.get('healthchecks', name)!, 'status');
  const podCount = (): number => api.count(/^POST pods/);
  const report = (run: string): Promise<ReportAnswer> => replica!.report(3, run);
  const runOf = (name: string): string => text(status(name), 'currentUUID');

  test('a check runs at its interval, regardless of the wall clock', async () => {
    check('dns', { runInterval: '1m', timeout: '30s' });
    await lead();
    assert.equal(podCount(), 1);
    clock.setByMs = 86_400_000;
    await clock.advance(20_000);
    assert.equal(
      (await report(runOf('dns'))).status,
      200,
      'a day later by the wall, in time all the same',
    );
    clock.setByMs = -86_400_000;
    await clock.advance(30_000);
    assert.equal(podCount(), 1);
    await clock.advance(15_000);
    assert.equal(podCount(), 2);
  });

  test('a clock jump deletes no pod or job early', async () => {
    const creationTimestamp = (): string => new Date(clock.wall()).toISOString();
    const pod = (name: string, phase: string): void => {
      const labels = { 'kh-run-uuid': name, healthcheck: 'dns' };
      const metadata = { labels, creationTimestamp: creationTimestamp() };
      api.put('pods', name, { metadata, status: { phase } } as unknown as JsonObject);
    };
    check('dns', { runInterval: '10h', timeout: '30s' });
    pod('listed', 'Failed');
    await lead();
    await report(runOf('dns'));
    pod('running', 'Running');
    const began = { 'ndots.dev/run-began': creationTimestamp() };
    const metadata = { creationTimestamp: creationTimestamp() };
    api.put('khjobs', 'job', { metadata, spec: { phase: 'Completed' } } as unknown as JsonObject);
    api.put('khstates', 'job', { spec: { OK: false } } as unknown as JsonObject, began);
    for (const jumpMs of [2 * 86_400_000, -2 * 86_400_000]) {
      clock.setByMs = jumpMs;
      pod(`new ${jumpMs}`, 'Failed');
      await clock.advance(120_000);
      for (const name of ['listed', 'running', `new ${jumpMs}`])
        assert.notEqual(api.get('pods', name), null, `${name} after a jump of ${jumpMs} ms`);
      assert.notEqual(api.get('khjobs', 'job'), null);
      api.remove('pods', `new ${jumpMs}`);
    }
    await clock.advance(3_600_000);
    for (const name of ['listed', 'running']) assert.equal(api.get('pods', name), null, name);
    assert.equal(api.get('khjobs', 'job'), null);
  });

  test('a run fails after its timeout, and its report is late even before the failure is written', async () => {
    check('dns', { runInterval: '1h', timeout: '30s' });
    await lead();
    const run = runOf('dns');
    await clock.advance(29_500);
    assert.equal((await report(run)).status, 410);
    await clock.advance(4000);
    assert.match(String(status('dns')['errors']), /timed out after 30s/);
    const gone = report(run);
    await clock.advance(3000);
    assert.equal((await gone).status, 400);
  });

  test('a run that timed out without a leader is not a failure, and the check runs again immediately', async () => {
    const before = { currentUUID: 'old', lastRunUnix: Math.floor(clock.wall() / 1000) - 3600 };
    check('dns', { runInterval: '1h', timeout: '30s' }, {}, { ...before, ok: true });
    await lead();
    assert.equal(podCount(), 1);
    assert.notEqual(runOf('dns'), 'old');
    assert.equal(status('dns')['failureCount'] ?? 0, 0);
    assert.equal(status('dns')['ok'], true);
  });

  test('checks of ndots run again if their leader died, and fail if they do not end', async () => {
    const begun = { currentUUID: 'old', lastRunUnix: Math.floor(clock.wall() / 1000) - 1 };
    check('own', { timeout: '30s' }, { 'ndots.dev/checks': 'checks: []' }, begun);
    await lead({ runOwn: () => new Promise(() => {}) });
    assert.notEqual(runOf('own'), 'old');
    assert.equal(podCount(), 0);
    await clock.advance(35_000);
    assert.match(String(status('own')['errors']), /the checks did not end/);
  });

  describe('checks of ndots, which measure latency', () => {
    let runs: number;
    let most: number;
    const oneSecond: CheckRunnerParts['runOwn'] = async () => {
      most = Math.max(most, ++runs);
      await sleep(clock, 1000);
      runs--;
      return { OK: true, Errors: [] };
    };
    const twelve = (status: object): void => {
      runs = most = 0;
      for (let number = 0; number < 12; number++)
        check(`own${number}`, { runInterval: '1h' }, { 'ndots.dev/checks': 'checks: []' }, status);
    };
    const allEnded = (): void => {
      for (let number = 0; number < 12; number++)
        assert.equal(status(`own${number}`)['successCount'], 1, `own${number}`);
    };

    test('four of them run at a time, even if all are due', async () => {
      twelve({});
      await lead({ runOwn: oneSecond });
      await clock.advance(20_000);
      assert.equal(most, 4);
      allEnded();
    });

    test('four of them run at a time, even if all restart after the death of their leader', async () => {
      twelve({ currentUUID: 'old', lastRunUnix: Math.floor(clock.wall() / 1000) - 1 });
      await lead({ runOwn: oneSecond });
      await clock.advance(20_000);
      assert.equal(most, 4);
      allEnded();
    });
  });

  test('singleRunOnly runs once', async () => {
    check('once', { singleRunOnly: true, runInterval: '10s', timeout: '5s' });
    await lead();
    await report(runOf('once'));
    await clock.advance(120_000);
    assert.equal(podCount(), 1);
  });

  test('500 checks start gradually: no flood of pods, and none is forgotten', async () => {
    for (let count = 0; count < 500; count++)
      check(`c${count}`, { runInterval: '1h', timeout: '10m' });
    await lead();
    assert.ok(podCount() <= 40, `${podCount()} pods in a second and a half`);
    await clock.advance(40_000);
    assert.equal(podCount(), 500);
  });

  test('a report that arrives while the API server is unavailable is held until it is back', async () => {
    check('dns', { runInterval: '1h', timeout: '30s' });
    await lead();
    api.isAway = true;
    const taken = report(runOf('dns'));
    await clock.advance(28_000);
    api.isAway = false;
    await clock.advance(3000);
    assert.equal((await taken).status, 200);
    assert.equal(status('dns')['ok'], true);
  });

  test('rejects a report that cannot be stored for a minute, so that the checker retries', async () => {
    check('dns', { runInterval: '1h', timeout: '2m' });
    await lead();
    api.isAway = true;
    const refused = assert.rejects(report(runOf('dns')), /away/);
    await clock.advance(65_000);
    await refused;
    api.isAway = false;
  });

  test('of two simultaneous reports for a run, one is accepted', async () => {
    check('dns', { runInterval: '1h', timeout: '30s' });
    await lead();
    const run = runOf('dns');
    const both = Promise.all([report(run), report(run)]);
    await clock.advance(5000);
    assert.deepEqual(new Set((await both).map(({ status }) => status)), new Set([200, 400]));
    assert.equal(status('dns')['successCount'], 1);
  });
});
