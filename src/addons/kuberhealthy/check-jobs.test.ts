import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { child, text, type JsonObject } from '../../server/base/json-object.ts';
import { Lead } from '../../../test/kit/check-lead.ts';
import { readKhCheck } from './check-object.ts';

test('a version 2 check without a timeout has five minutes, as in Kuberhealthy 2.7.1', () => {
  assert.equal(readKhCheck({ metadata: {}, spec: {} }, null).timeoutMs, 300_000);
});

describe('jobs', () => {
  let lead: Lead;
  beforeEach(() => {
    lead = new Lead();
  });
  afterEach(() => lead.end());

  const job = (name: string, spec: object = {}, metadata: object = {}): void =>
    lead.api.put('khjobs', name, {
      spec: { timeout: '30s', podSpec: { containers: [{ name: 'a' }] }, ...spec },
      metadata,
    } as unknown as JsonObject);
  const phase = (name: string): string =>
    text(child(lead.api.get('khjobs', name)!, 'spec'), 'phase');
  const state = (name: string): JsonObject => child(lead.api.get('khstates', name)!, 'spec');
  const pods = (): number => lead.api.count(/^POST pods/);

  test('a job runs once, reports its phase, and owns its pod', async () => {
    job('once');
    await lead.begin();
    assert.equal(phase('once'), 'Running');
    const [pod] = lead.api.all('pods') as [JsonObject];
    const [owner] = child(pod, 'metadata')['ownerReferences'] as JsonObject[];
    assert.equal(owner?.['kind'], 'KuberhealthyJob');
    const taken = lead.report(2, text(state('once'), 'uuid'), 'no answer');
    await lead.clock.advance(3000);
    assert.equal((await taken).status, 200);
    assert.equal(phase('once'), 'Completed');
    assert.deepEqual(state('once')['Errors'], ['no answer']);
    await lead.clock.advance(3_600_000);
    assert.equal(pods(), 1);
  });

  test('a completed job is deleted after a while, and one without a report stays with its error', async () => {
    const made = new Date(new Lead().clock.wall()).toISOString();
    job('told', {}, { creationTimestamp: made });
    job('silent', {}, { creationTimestamp: made });
    await lead.begin();
    await Promise.all([lead.report(2, text(state('told'), 'uuid')), lead.clock.advance(40_000)]);
    assert.match(
      String(state('silent')['Errors']),
      /^Job execution error: team\/silent: timed out/,
    );
    assert.equal(phase('silent'), 'Running', 'as with Kuberhealthy');
    await lead.clock.advance(16 * 60_000);
    assert.equal(lead.api.get('khjobs', 'told'), null);
    assert.notEqual(lead.api.get('khjobs', 'silent'), null);
    assert.notEqual(lead.api.get('khstates', 'silent'), null);
    assert.equal(pods(), 2);
  });

  test('a job that ran before this process started does not run again', async () => {
    job('done', { phase: 'Completed' });
    job('running', { phase: 'Running' });
    await lead.begin();
    await lead.clock.advance(120_000);
    assert.equal(pods(), 0);
  });

  test('a job with the name of a deleted one runs, regardless of the old state', async () => {
    const spec = { OK: true, uuid: 'old', LastRun: '2020-01-01T00:00:00Z' };
    const annotations = {
      'ndots.dev/run-began': '2020-01-01T00:00:00Z',
      'ndots.dev/run-is-on': 'true',
    };
    lead.api.put('khstates', 'again', { spec } as unknown as JsonObject, annotations);
    job('again', {}, { creationTimestamp: '2021-01-01T00:00:00Z' });
    await lead.begin();
    assert.equal(pods(), 1);
    assert.equal(phase('again'), 'Running');
  });

  test('two leaders run a job once', async () => {
    job('once');
    const other = new Lead(lead.api, lead.clock);
    await Promise.all([lead.begin(), other.begin()]);
    await lead.clock.advance(10_000);
    assert.equal(pods(), 1);
    await other.end();
  });

  test('a job whose process is killed between writing its state and creating its pod fails, and does not run twice', async () => {
    job('killed');
    const began = new Date(lead.clock.wall()).toISOString();
    const spec = { OK: true, uuid: 'killed', LastRun: null };
    const annotations = { 'ndots.dev/run-began': began, 'ndots.dev/run-is-on': 'true' };
    lead.api.put('khstates', 'killed', { spec } as unknown as JsonObject, annotations);
    await lead.begin();
    await lead.clock.advance(60_000);
    assert.match(String(state('killed')['Errors']), /timed out.*its pod is gone/);
    await lead.clock.advance(60_000);
    assert.equal(pods(), 0);
  });

  test('a job with the name of a check does not run, with a reason, until the check is deleted', async () => {
    lead.api.put('khchecks', 'dns', { spec: { runInterval: '1h', timeout: '30s' } });
    job('dns');
    await lead.begin();
    await lead.clock.advance(5000);
    assert.equal(pods(), 1, 'that of the check');
    assert.equal(phase('dns'), '');
    assert.match(lead.lines.join('\n'), /team\/dns: a khcheck has the same name/);
    lead.api.remove('khchecks', 'dns');
    await lead.clock.advance(40_000);
    assert.equal(pods(), 2);
  });
});
