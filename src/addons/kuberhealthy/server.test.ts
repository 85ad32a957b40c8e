import assert from 'node:assert/strict';
import { request } from 'node:http';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { systemClock } from '../../server/base/clock.ts';
import type { JsonObject } from '../../server/base/json-object.ts';
import { makeLog } from '../../server/base/log.ts';
import { readHealthCheck, readKhCheck, readKhJob, type CheckObject } from './check-object.ts';
import type { ReportRequest } from './report-intake.ts';
import { KuberhealthyServer } from './server.ts';

const nasty = `</td><script>alert("1")</script>'\n|\\`;

const failedCheck = (namespace: string, name: string): CheckObject =>
  readHealthCheck({
    metadata: { namespace, name, labels: { 'kuberhealthy.io/severity': nasty } },
    spec: { runInterval: '2m', timeout: nasty },
    status: {
      ok: false,
      errors: [nasty, '\0\u001b[2J'],
      failureCount: 2,
      lastRunUnix: 1_700_000_000,
    },
  });

const khState = (ok: boolean): JsonObject => ({
  spec: { OK: ok, Errors: ok ? [] : ['old'], uuid: 'a', LastRun: '2026-01-01T00:00:00Z' },
});

/** Sends headers that `fetch` does not let callers set. */
function rawStatus(
  port: number,
  path: string,
  { method, headers }: { readonly method: string; readonly headers: Record<string, string> },
): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, method, headers }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    sent.on('error', reject);
    sent.end();
  });
}

describe('Kuberhealthy status pages', () => {
  const seen: ReportRequest[] = [];
  let port = 0;
  const checks = [
    failedCheck('team', nasty),
    failedCheck('a', 'dns'),
    failedCheck('b', 'dns'),
    readKhCheck({ metadata: { namespace: 'a', name: 'old' }, spec: {} }, null),
    readHealthCheck({ metadata: { namespace: 'a', name: 'new' }, spec: 'none' }),
    readKhCheck({ metadata: { namespace: 'moving', name: 'dns' }, spec: {} }, khState(false)),
    readHealthCheck({ metadata: { namespace: 'moving', name: 'dns' }, status: { ok: true } }),
    readKhJob({ metadata: { namespace: 'moving', name: 'dns' }, spec: {} }, khState(true)),
    // Fits into 64 bits, but is not a date.
    readHealthCheck({
      metadata: { namespace: 'far', name: 'far' },
      status: { lastRunUnix: 9e18, lastOKUnix: 9e18, lastFailureUnix: 9e18, runDuration: 9e18 },
    }),
  ];
  const server = new KuberhealthyServer({
    intake: {
      take: (report) => {
        seen.push(report);
        const status = report.body === null ? 413 : 200;
        return Promise.resolve({ status, text: '', check: '' });
      },
    },
    facts: () => ({
      checks,
      leader: '<b>me</b>',
      leads: true,
      loopSeconds: 0,
      refused: 0,
      objects: { leftOut: 0, bytes: 0 },
      due: 0,
      sweepSeconds: 0,
      swept: new Map(),
      pods: { pods: 0, leftOut: 0 },
      podOfRun: () => null,
      eventsDropped: 0,
      wall: 1_700_000_100_000,
    }),
    isReady: () => true,
    clock: systemClock,
    ask: (namespace, name) => (namespace === 'a' && name === 'dns' ? 'begins' : 'unknown'),
    events: {
      of: () => Promise.resolve([{ message: nasty, reason: 'PodCreated', type: 'Normal' }]),
    },
    log: makeLog(() => undefined),
    requestMs: 1000,
    connectionsMax: 200,
    more: () => [],
    own: () => null,
  });
  before(async () => {
    port = await server.listen('127.0.0.1', 0);
  });
  after(() => server.close());

  const get = (path: string, accept = 'text/html'): Promise<Response> =>
    fetch(`http://127.0.0.1:${port}${path}`, { headers: { accept } });

  test('foreign text is escaped on the page, and no script may run', async () => {
    const response = await get('/');
    const page = await response.text();
    assert.doesNotMatch(page, /<script|<b>/);
    assert.match(page, /&lt;script&gt;alert\(&quot;1&quot;\)&lt;\/script&gt;&#39;/);
    assert.match(page, /run by &lt;b&gt;me&lt;\/b&gt;/);
    assert.match(response.headers.get('content-security-policy') ?? '', /^default-src 'none'/);
    assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
    assert.match(page, /1 min|100 s ago/);
  });

  test('programs get JSON in both versions, optionally for some namespaces', async () => {
    const two = (await (await get('/', '*/*')).json()) as { CheckDetails: object };
    assert.deepEqual(Object.keys(two.CheckDetails), [
      `team/${nasty}`,
      'a/dns',
      'b/dns',
      'a/old',
      'a/new',
      'moving/dns',
      'moving/dns (healthcheck)',
      'far/far',
    ]);
    const three = (await (await get('/json?namespace=a,,c')).json()) as {
      OK: boolean;
      CheckDetails: Record<string, { ok: boolean; nextRunUnix?: number }>;
    };
    assert.deepEqual(Object.keys(three.CheckDetails), ['dns', 'old', 'new']);
    assert.equal(three.CheckDetails['dns']?.nextRunUnix, 1_700_000_120);
    const all = (await (await get('/json')).json()) as typeof three;
    const moving = ['moving/dns (khcheck)', 'moving/dns', 'moving/dns (khjob)'];
    const bare = [nasty, 'a/dns', 'b/dns', 'old', 'new'];
    assert.deepEqual(Object.keys(all.CheckDetails), [...bare, ...moving, 'far']);
    assert.equal(all.OK, false);
  });

  test('checks of versions 2 and 3 and a job with the same name and namespace are all listed', async () => {
    interface Details {
      readonly OK?: boolean;
      readonly ok?: boolean;
    }
    type Page = Readonly<Record<'CheckDetails' | 'JobDetails', Record<string, Details>>>;
    const two = (await (await get('/?namespace=moving', '*/*')).json()) as Page;
    assert.equal(two.CheckDetails['moving/dns']?.OK, false, 'the page of version 2: its own check');
    assert.equal(two.CheckDetails['moving/dns (healthcheck)']?.OK, true);
    assert.equal(two.JobDetails['moving/dns']?.OK, true);
    const three = (await (await get('/json?namespace=moving')).json()) as Page;
    assert.equal(three.CheckDetails['dns']?.ok, true, 'the page of version 3: its own');
    assert.equal(three.CheckDetails['moving/dns']?.ok, false);
    assert.equal(three.CheckDetails['moving/dns (khjob)']?.ok, true);
    const page = await (await get('/?namespace=moving')).text();
    for (const kind of ['khcheck', 'healthcheck', 'khjob'])
      assert.match(page, new RegExp(`<td>moving/dns</td><td>${kind}</td>`));
    const metrics = await (await get('/metrics')).text();
    assert.match(
      metrics,
      /^kuberhealthy_job\{check="moving\/dns",error="",namespace="moving",.*\} 1$/m,
    );
    assert.match(
      metrics,
      /^kuberhealthy_check\{check="moving\/dns",error="old",namespace="moving",.*\} 0$/m,
    );
    const series = metrics.split('\n').map((line) => line.replace(/ [^ ]*$/, ''));
    const named = series.filter((line) => line.startsWith('kuberhealthy_'));
    assert.equal(new Set(named).size, named.length, 'no series is there twice');
  });

  test('metrics are valid for Prometheus, regardless of error texts', async () => {
    const text = await (await get('/metrics')).text();
    for (const line of text.split('\n').filter((each) => each !== '' && !each.startsWith('#')))
      assert.match(line, /^[a-z_]+(\{([a-z_]+="([^"\\\n]|\\["\\n])*",?)*\})? -?[0-9.e+]+$/);
    assert.doesNotMatch(text, /(?!\n)\p{Cc}/u);
    assert.match(text, /^kuberhealthy_check_failure_total\{check="dns",namespace="a",.*\} 2$/m);
  });

  test('a run is requested with POST, from the same site or by a program', async () => {
    const ask = async (query: string, init: RequestInit = { method: 'POST' }): Promise<number> =>
      (await fetch(`http://127.0.0.1:${port}/api/run${query}`, init)).status;
    const named = '?namespace=a&healthcheck=dns';
    assert.equal(await ask(named), 202);
    assert.equal(await ask('?namespace=b&healthcheck=dns'), 404);
    assert.equal(await ask('?namespace=a'), 400);
    assert.equal(await ask(named, {}), 405);
    const elsewhere = { method: 'POST', headers: { 'sec-fetch-site': 'cross-site' } };
    assert.equal(await rawStatus(port, `/api/run${named}`, elsewhere), 403);
  });

  test('events are JSON, and the page shows no logs', async () => {
    const events = await (await get('/api/events?namespace=a&healthcheck=dns')).json();
    assert.deepEqual(events, [{ message: nasty, reason: 'PodCreated', type: 'Normal' }]);
    assert.equal((await get('/api/events?namespace=a')).status, 400);
    const logs = await get('/api/logs?namespace=a&healthcheck=dns&pod=a');
    assert.equal(logs.status, 404);
    assert.match(await logs.text(), /kubectl logs/);
  });

  test('a POST to a page explains where reports go', async () => {
    const response = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: '{}' });
    assert.equal(response.status, 405);
    assert.match(await response.text(), /\/check/);
  });

  test('a body that is too large is dropped, and the sender gets an error', async () => {
    const sent = Array.from({ length: 20 }, () =>
      fetch(`http://127.0.0.1:${port}/check`, { method: 'POST', body: 'x'.repeat(400_000) }),
    );
    for (const response of await Promise.all(sent)) assert.equal(response.status, 413);
  });

  test('slow reports are dropped in favour of fast ones', async () => {
    const head = `POST /check HTTP/1.1\r\nHost: a\r\nContent-Length: 250000\r\n\r\n${'x'.repeat(240_000)}`;
    const answers = Array.from({ length: 60 }, () => {
      const socket = connect(port, '127.0.0.1').on('error', () => undefined);
      socket.write(head);
      let text = '';
      socket.on('data', (bytes) => (text += bytes.toString()));
      return new Promise<string>((resolve) => socket.on('close', () => resolve(text)));
    });
    const post = (): Promise<Response> =>
      fetch(`http://127.0.0.1:${port}/check`, { method: 'POST', body: 'y'.repeat(1000) });
    for (const response of await Promise.all(Array.from({ length: 10 }, post)))
      assert.equal(response.status, 200);
    const dropped = (await Promise.all(answers)).filter((text) => text.includes(' 503 '));
    // 60 objects of 240 kB exceed 8 MiB.
    assert.ok(dropped.length >= 20, String(dropped.length));
  });

  test('silent and incomplete connections do not block a report', async () => {
    const sockets = Array.from({ length: 400 }, (_, index) => {
      const socket = connect(port, '127.0.0.1').on('error', () => undefined);
      if (index % 2 === 0)
        socket.write('POST /check HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{');
      return socket;
    });
    for (let count = 0; count < 10; count++) {
      const body = 'y';
      const { status } = await fetch(`http://127.0.0.1:${port}/check`, { method: 'POST', body });
      assert.equal(status, 200);
    }
    for (const socket of sockets) socket.destroy();
  });

  test('incomplete requests are closed, and others are served', async () => {
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
    assert.equal((await get('/healthz')).status, 200);
    await Promise.all(ended);
    assert.equal(seen.length, before);
  });
});
