import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Lead } from '../../../test/kit/check-lead.ts';
import { child, text, type JsonObject } from '../../server/base/json-object.ts';
import { makeLog } from '../../server/base/log.ts';
import { KuberhealthyServer } from './server.ts';

describe('a flood of reports over HTTP', () => {
  let lead: Lead;
  let server: KuberhealthyServer;
  let port = 0;
  let lines: string[];
  let agent: Agent;

  beforeEach(async () => {
    lead = new Lead();
    lead.api.put('khchecks', 'old', { spec: { runInterval: '1h', timeout: '5m' } });
    await lead.begin();
    lines = [];
    agent = new Agent({ keepAlive: true, maxSockets: 64 });
    server = new KuberhealthyServer({
      intake: lead.intake,
      facts: () => ({
        checks: [...lead.watch.checks()],
        leader: 'a',
        leads: true,
        ...lead.runner.numbers,
        sweepSeconds: 0,
        swept: new Map(),
        pods: lead.watch.pods.numbers,
        objects: lead.watch.numbers,
        podOfRun: () => null,
        eventsDropped: lead.events.dropped,
        wall: lead.clock.wall(),
      }),
      isReady: () => true,
      ask: (namespace, name) => lead.runner.ask(namespace, name),
      events: { of: () => Promise.resolve([]) },
      clock: lead.clock,
      log: makeLog((line) => lines.push(line)),
      more: () => [],
      own: () => null,
    });
    port = await server.listen('127.0.0.1', 0);
  });
  afterEach(async () => {
    agent.destroy();
    await server.close();
    await lead.end();
  });

  const post = (run: string, body: string): Promise<number> =>
    new Promise((resolve, reject) => {
      const headers = { 'kh-run-uuid': run };
      const path = `/externalCheckStatus?token=${run.length < 64 ? lead.tokenOf(run) : ''}`;
      const sent = request(
        { host: '127.0.0.1', port, path, method: 'POST', headers, agent },
        (response) => {
          response.resume();
          response.on('end', () => resolve(response.statusCode ?? 0));
        },
      );
      sent.on('error', reject);
      sent.end(body);
    });
  const run = (): string =>
    text(child(lead.api.get('khstates', 'old') as JsonObject, 'spec'), 'uuid');

  test('10 000 reports cause one API request, and pages are still served', async () => {
    const body = '{"OK": false, "Errors": ["no answer"]}';
    assert.equal(await post(run(), body), 200);
    await lead.clock.advance(100);
    const before = lead.api.asked.length;
    const all = Array.from({ length: 10_000 }, () => post(run(), body));
    const page = await fetch(`http://127.0.0.1:${port}/metrics`);
    assert.match(await page.text(), /^ndots_check_reports_total\{/m);
    assert.deepEqual(new Set(await Promise.all(all)), new Set([200]));
    assert.equal(lead.api.asked.length, before);
  });

  test('rejected reports are counted, and logged once a minute', async () => {
    const status = new Set(
      await Promise.all(Array.from({ length: 2000 }, () => post(run(), 'no report'))),
    );
    assert.deepEqual(status, new Set([400]));
    assert.equal(lines.length, 1, lines.join('\n'));
    const page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    assert.match(page, /^ndots_check_reports_total\{status="400",version="2"\} 2000$/m);
  });

  test('long names and errors are shortened for display', async () => {
    const huge = 'x'.repeat(15_000);
    const refused = post(huge, '{}');
    // The report is held as if its run were not known yet.
    for (let count = 0; count < 20; count++) {
      await pause(10);
      await lead.clock.advance(200);
    }
    assert.equal(await refused, 400);
    assert.equal(await post('x'.repeat(20_000), '{}'), 431);
    const errors = Array.from({ length: 1000 }, (_, index) => `${index} ${'y'.repeat(200)}`);
    assert.equal(await post(run(), JSON.stringify({ OK: false, Errors: errors })), 200);
    await lead.clock.advance(100);
    const page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    assert.ok(Math.max(...page.split('\n').map((line) => line.length)) < 1000);
  });
});
