import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { makeLog } from '../base/log.ts';
import { seededRandom } from '../base/random.ts';
import { VirtualClock } from '../base/virtual-clock.ts';
import type { ApiClient, ApiRequest } from '../kube/api/client.ts';
import { ApiFailure } from '../kube/api/failure.ts';
import { asObject, child, text, type JsonObject } from '../kube/api/json-object.ts';
import { CheckCluster } from './check-cluster.ts';
import { CheckRunner } from './check-runner.ts';
import { CheckWatch } from './check-watch.ts';
import { ReportIntake, type ReportAnswer } from './report-intake.ts';

/** A clock whose wall time can be set, as an administrator does. */
class SettableClock extends VirtualClock {
  setByMs = 0;

  override wall(): number {
    return super.wall() + this.setByMs;
  }
}

/** An API server with HealthChecks only, in memory: what is not asked for here it does not know. */
class Api implements ApiClient {
  readonly host = 'api';
  readonly checks = new Map<string, JsonObject>();
  readonly pods: JsonObject[] = [];
  isAway = false;
  #version = 1;

  put(name: string, spec: object, annotations: object = {}, status: object = {}): void {
    const version = String(++this.#version);
    const metadata = { name, namespace: 'team', uid: `uid-${name}`, annotations };
    this.checks.set(name, { metadata: { ...metadata, resourceVersion: version }, spec, status });
  }

  status(name: string): JsonObject {
    return child(this.checks.get(name)!, 'status');
  }

  stream({ path, query, change, into, signal }: ApiRequest): Promise<void> {
    const answer = (value: object): Promise<void> => {
      into.push(Buffer.from(JSON.stringify(value)));
      return Promise.resolve();
    };
    const failed = (status: number, kind: ApiFailure['kind']): Promise<void> =>
      Promise.reject(new ApiFailure({ kind, status, text: `the API server answered ${status}` }));
    if (this.isAway) return Promise.reject(new ApiFailure({ kind: 'network', text: 'away' }));
    if (path === '/apis/comcast.github.io/v1') return failed(404, 'missing');
    if (path === '/apis/kuberhealthy.github.io/v2') return answer({});
    if (query['watch'] !== undefined)
      return new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason as Error)),
      );
    if (path === '/api/v1/pods') return answer({ items: this.pods });
    if (path.endsWith('/pods')) {
      this.pods.push(asObject(JSON.parse(change!.body)));
      return answer({});
    }
    if (path.endsWith('/healthchecks'))
      return answer({ metadata: { resourceVersion: '9' }, items: [...this.checks.values()] });
    const name = path.split('/').at(-2)!;
    const before = this.checks.get(name);
    if (before === undefined) return failed(404, 'missing');
    const { metadata, status } = JSON.parse(change!.body) as JsonObject;
    const known = child(before, 'metadata');
    if (text(asObject(metadata), 'resourceVersion') !== text(known, 'resourceVersion'))
      return failed(409, 'server');
    const after = {
      ...before,
      metadata: { ...known, resourceVersion: String(++this.#version) },
      status: { ...child(before, 'status'), ...asObject(status) },
    };
    this.checks.set(name, after);
    return answer(after);
  }

  close(): void {}
}

describe('the replica that leads', () => {
  let clock: SettableClock;
  let api: Api;
  let watch: CheckWatch;
  let intake: ReportIntake;
  let stop: AbortController;
  let running: Promise<void>;
  let lines: string[];

  beforeEach(() => {
    clock = new SettableClock();
    api = new Api();
    lines = [];
    stop = new AbortController();
  });
  afterEach(async () => {
    stop.abort();
    await running;
    await watch.stop();
  });

  async function lead(
    runOwn: () => Promise<{ OK: boolean; Errors: readonly string[] }> = () =>
      Promise.resolve({ OK: true, Errors: [] }),
  ): Promise<void> {
    const log = makeLog((line) => lines.push(line));
    const parts = { client: api, clock, log, namespace: '' };
    watch = new CheckWatch({ ...parts, random: seededRandom(3) });
    const cluster = new CheckCluster({ ...parts, watch });
    intake = new ReportIntake({ watch, cluster, clock, authoritativePod: 'a' });
    const runner = new CheckRunner({
      ...parts,
      watch,
      cluster,
      authoritativePod: 'a',
      retention: { completed: 1, failed: 2, failedMs: 1 },
      newRun: randomUUID,
      reportingUrl: () => Promise.resolve('http://10.0.0.9'),
      whyUnreported: () => Promise.resolve(''),
      runOwn,
    });
    watch.start();
    running = runner.run(stop.signal);
    await clock.advance(1500);
  }

  const report = (run: string): Promise<ReportAnswer> =>
    intake.take(
      {
        version: 3,
        method: 'POST',
        contentType: 'application/json',
        run,
        from: '',
        body: '{"OK":true}',
      },
      new AbortController().signal,
    );
  const runOf = (name: string): string => text(api.status(name), 'currentUUID');

  test('a check runs at its interval, whatever the wall clock is set to', async () => {
    api.put('dns', { runInterval: '1m', timeout: '30s' });
    await lead();
    assert.equal(api.pods.length, 1);
    clock.setByMs = 86_400_000;
    await clock.advance(20_000);
    assert.equal(
      (await report(runOf('dns'))).status,
      200,
      'a day later by the wall, in time all the same',
    );
    clock.setByMs = -86_400_000;
    await clock.advance(30_000);
    assert.equal(api.pods.length, 1);
    await clock.advance(15_000);
    assert.equal(api.pods.length, 2);
  });

  test('a run has failed after its timeout, and its report is late before that is written', async () => {
    api.put('dns', { runInterval: '1h', timeout: '30s' });
    await lead();
    const run = runOf('dns');
    await clock.advance(29_500);
    assert.equal((await report(run)).status, 410);
    await clock.advance(4000);
    assert.match(String(api.status('dns')['errors']), /timed out after 30s/);
    const gone = report(run);
    await clock.advance(3000);
    assert.equal((await gone).status, 400);
  });

  test('a run that timed out while nobody led is no failure, and the check runs again at once', async () => {
    const before = { currentUUID: 'old', lastRunUnix: Math.floor(clock.wall() / 1000) - 3600 };
    api.put('dns', { runInterval: '1h', timeout: '30s' }, {}, { ...before, ok: true });
    await lead();
    assert.equal(api.pods.length, 1);
    assert.notEqual(runOf('dns'), 'old');
    assert.equal(api.status('dns')['failureCount'] ?? 0, 0);
    assert.equal(api.status('dns')['ok'], true);
  });

  test('checks of ndots whose leader died run again, those that do not end have failed', async () => {
    const begun = { currentUUID: 'old', lastRunUnix: Math.floor(clock.wall() / 1000) - 1 };
    api.put('own', { timeout: '30s' }, { 'ndots.dev/checks': 'checks: []' }, begun);
    await lead(() => new Promise(() => {}));
    assert.notEqual(runOf('own'), 'old');
    assert.equal(api.pods.length, 0);
    await clock.advance(35_000);
    assert.match(String(api.status('own')['errors']), /the checks did not end/);
  });

  test('singleRunOnly runs once', async () => {
    api.put('once', { singleRunOnly: true, runInterval: '10s', timeout: '5s' });
    await lead();
    await report(runOf('once'));
    await clock.advance(120_000);
    assert.equal(api.pods.length, 1);
  });

  test('500 checks begin by and by: no flood of pods, none forgotten', async () => {
    for (let count = 0; count < 500; count++)
      api.put(`c${count}`, { runInterval: '1h', timeout: '10m' });
    await lead();
    assert.ok(api.pods.length <= 40, `${api.pods.length} pods in a second and a half`);
    await clock.advance(40_000);
    assert.equal(api.pods.length, 500);
  });

  test('a report that comes while the API server is away is held until it is back', async () => {
    api.put('dns', { runInterval: '1h', timeout: '30s' });
    await lead();
    api.isAway = true;
    const taken = report(runOf('dns'));
    await clock.advance(28_000);
    api.isAway = false;
    await clock.advance(3000);
    assert.equal((await taken).status, 200);
    assert.equal(api.status('dns')['ok'], true);
  });

  test('a report that nobody can write down for a minute is refused so that the checker knows', async () => {
    api.put('dns', { runInterval: '1h', timeout: '2m' });
    await lead();
    api.isAway = true;
    const refused = assert.rejects(report(runOf('dns')), /away/);
    await clock.advance(65_000);
    await refused;
    api.isAway = false;
  });

  test('two reports of one run at the same time: one is taken', async () => {
    api.put('dns', { runInterval: '1h', timeout: '30s' });
    await lead();
    const run = runOf('dns');
    const both = Promise.all([report(run), report(run)]);
    await clock.advance(5000);
    assert.deepEqual(new Set((await both).map(({ status }) => status)), new Set([200, 400]));
    assert.equal(api.status('dns')['successCount'], 1);
  });
});
