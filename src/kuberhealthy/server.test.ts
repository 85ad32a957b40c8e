import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { makeLog } from '../base/log.ts';
import { readHealthCheck, readKhCheck, type CheckObject } from './check-object.ts';
import type { ReportRequest } from './report-intake.ts';
import { KuberhealthyServer } from './server.ts';

const nasty = `</td><script>alert("1")</script>'\n|\\`;

const failedCheck = (namespace: string, name: string): CheckObject =>
  readHealthCheck({
    metadata: { namespace, name, labels: { 'kuberhealthy.io/severity': nasty } },
    spec: { runInterval: '2m', timeout: nasty },
    status: { ok: false, errors: [nasty], failureCount: 2, lastRunUnix: 1_700_000_000 },
  });

describe('Kuberhealthy’s pages', () => {
  const seen: ReportRequest[] = [];
  let port = 0;
  const checks = [
    failedCheck('team', nasty),
    failedCheck('a', 'dns'),
    failedCheck('b', 'dns'),
    readKhCheck({ metadata: { namespace: 'a', name: 'old' }, spec: {} }, null),
    readHealthCheck({ metadata: { namespace: 'a', name: 'new' }, spec: 'none' }),
  ];
  const server = new KuberhealthyServer({
    intake: {
      take: (request) => {
        seen.push(request);
        const status = request.body === null ? 413 : 200;
        return Promise.resolve({ status, text: '', check: '' });
      },
    },
    facts: () => ({
      checks,
      leader: '<b>me</b>',
      leads: true,
      loopSeconds: 0,
      due: 0,
      sweepSeconds: 0,
      swept: new Map(),
      wall: 1_700_000_100_000,
    }),
    isReady: () => true,
    log: makeLog(() => undefined),
    requestMs: 1000,
    more: () => [],
    own: () => null,
  });
  before(async () => {
    port = await server.listen('127.0.0.1', 0);
  });
  after(() => server.close());

  const get = (path: string, accept = 'text/html'): Promise<Response> =>
    fetch(`http://127.0.0.1:${port}${path}`, { headers: { accept } });

  test('what others wrote is no markup on the page, and nothing may run there', async () => {
    const response = await get('/');
    const page = await response.text();
    assert.doesNotMatch(page, /<script|<b>/);
    assert.match(page, /&lt;script&gt;alert\(&quot;1&quot;\)&lt;\/script&gt;&#39;/);
    assert.match(page, /run by &lt;b&gt;me&lt;\/b&gt;/);
    assert.match(response.headers.get('content-security-policy') ?? '', /^default-src 'none'/);
    assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
    assert.match(page, /1 min|100 s ago/);
  });

  test('programs get JSON, of both versions, and can ask for some namespaces', async () => {
    const two = (await (await get('/', '*/*')).json()) as { CheckDetails: object };
    assert.deepEqual(Object.keys(two.CheckDetails), [
      `team/${nasty}`,
      'a/dns',
      'b/dns',
      'a/old',
      'a/new',
    ]);
    const three = (await (await get('/json?namespace=a,,c')).json()) as {
      OK: boolean;
      CheckDetails: Record<string, { ok: boolean; nextRunUnix?: number }>;
    };
    assert.deepEqual(Object.keys(three.CheckDetails), ['dns', 'old', 'new']);
    assert.equal(three.CheckDetails['dns']?.nextRunUnix, 1_700_000_120);
    const all = (await (await get('/json')).json()) as typeof three;
    assert.deepEqual(Object.keys(all.CheckDetails), [nasty, 'a/dns', 'b/dns', 'old', 'new']);
    assert.equal(all.OK, false);
  });

  test('metrics are lines that Prometheus can read, whatever errors say', async () => {
    const text = await (await get('/metrics')).text();
    for (const line of text.split('\n').filter((each) => each !== '' && !each.startsWith('#')))
      assert.match(line, /^[a-z_]+(\{([a-z_]+="([^"\\\n]|\\["\\n])*",?)*\})? -?[0-9.e+]+$/);
    assert.match(text, /^kuberhealthy_check_failure_total\{check="dns",namespace="a",.*\} 2$/m);
  });

  test('a page that is posted to says where reports go', async () => {
    const response = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: '{}' });
    assert.equal(response.status, 405);
    assert.match(await response.text(), /\/check/);
  });

  test('a body that is too large is not kept, and its sender is told', async () => {
    const sent = Array.from({ length: 20 }, () =>
      fetch(`http://127.0.0.1:${port}/check`, { method: 'POST', body: 'x'.repeat(400_000) }),
    );
    for (const response of await Promise.all(sent)) assert.equal(response.status, 413);
  });

  test('reports that have come in part count as held: those that are too many are put off', async () => {
    const head = 'POST /check HTTP/1.1\r\nHost: a\r\nContent-Length: 262144\r\n\r\n';
    const slow = Array.from({ length: 40 }, () => {
      const socket = connect(port, '127.0.0.1');
      let told = '';
      socket.on('error', () => undefined);
      socket.on('data', (bytes) => (told += bytes.toString('latin1')));
      // 40 × 256 KiB: more than 8 MiB, and none comes to its end.
      socket.write(head + 'x'.repeat(262_000));
      return new Promise<string>((resolve) => socket.on('close', () => resolve(told)));
    });
    const answers = await Promise.all(slow);
    const putOff = answers.filter((told) => told.startsWith('HTTP/1.1 503'));
    assert.ok(putOff.length > 0 && putOff.length < 40, `${putOff.length} of 40`);
    const report = { method: 'POST', body: '{}' };
    assert.equal((await fetch(`http://127.0.0.1:${port}/check`, report)).status, 200);
  });

  test('requests that do not come to their end are ended, and the others are served meanwhile', async () => {
    const before = seen.length;
    const head = 'POST /check HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{';
    const ended = [head, 'GET / HTTP/1.1\r\nX-A: ', ''].flatMap((text) =>
      Array.from({ length: 50 }, () => {
        const socket = connect(port, '127.0.0.1');
        socket.on('error', () => undefined);
        socket.write(text);
        socket.resume();
        return new Promise((resolve) => socket.on('close', resolve));
      }),
    );
    const begun = performance.now();
    assert.equal((await get('/healthz')).status, 200);
    await Promise.all(ended);
    assert.ok(performance.now() - begun < 10_000);
    assert.equal(seen.length, before);
  });
});
