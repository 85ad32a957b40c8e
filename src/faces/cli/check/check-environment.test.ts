import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keptOf, unheard } from './check-environment.ts';
import { parseCheckOptions } from './check-options.ts';

const serve = ['serve', '--kuberhealthy'];

test('environment variables of Kuberhealthy set retention, reporting URL and address; the command line overrides them', () => {
  const env = {
    KH_MAX_COMPLETED_POD_COUNT: '4',
    KH_MAX_ERROR_POD_COUNT: '0',
    KH_ERROR_POD_RETENTION_TIME: '72h',
    KH_MAX_JOB_AGE: '1h30m',
    KH_EXTERNAL_REPORTING_URL: 'http://kuberhealthy.team.svc/externalCheckStatus',
    KH_LISTEN_ADDRESS: ':80',
  };
  const read = parseCheckOptions(serve, env);
  const hour = 3_600_000;
  assert.deepEqual(read.kept, { completed: 4, failed: 0, failedMs: 72 * hour, jobsMs: 1.5 * hour });
  assert.equal(read.reportingUrl?.href, 'http://kuberhealthy.team.svc/');
  assert.deepEqual(read.listen, { host: '0.0.0.0', port: 80 });
  const given = parseCheckOptions([...serve, '--keep-completed', '2', '--listen', ':81'], env);
  assert.deepEqual([given.kept.completed, given.listen.port], [2, 81]);
  assert.equal(parseCheckOptions(['serve'], env).kept.completed, 1, 'not Kuberhealthy');
  assert.deepEqual(parseCheckOptions(serve, {}).kept, keptOf({}));
});

test('an invalid number or time is refused, with its name', () => {
  for (const [name, value] of [
    ['KH_MAX_COMPLETED_POD_COUNT', '-1'],
    ['KH_MAX_ERROR_POD_COUNT', '99999999'],
    ['KH_MAX_JOB_AGE', 'long'],
  ] as const)
    assert.throws(() => keptOf({ [name]: value }), new RegExp(name));
});

test('variables of Kuberhealthy without effect are listed', () => {
  const env = {
    KH_TLS_CERT_FILE: '/a',
    KH_LOG_LEVEL: '',
    KH_RUN_UUID: 'a',
    KH_PROM_X: '1',
    HOME: '/',
  };
  assert.deepEqual(unheard(env), ['KH_PROM_X', 'KH_TLS_CERT_FILE']);
});
