import assert from 'node:assert/strict';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { child, text, type JsonObject } from '../../server/base/json-object.ts';
import { Lead } from '../../../test/kit/check-lead.ts';
import { EventList } from './event-list.ts';

/** Bytes in use after garbage collection. */
function usedMemory(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}

describe('events of checks', () => {
  let lead: Lead;
  beforeEach(() => {
    lead = new Lead();
  });
  afterEach(() => lead.end());

  const check = (name: string, spec: object): void =>
    lead.api.put('healthchecks', name, { spec } as unknown as JsonObject);
  const runOf = (name: string): string =>
    text(child(lead.api.get('healthchecks', name)!, 'status'), 'currentUUID');
  const events = (): readonly string[] =>
    lead.api
      .all('events')
      .map((event) => `${text(event, 'type')} ${text(event, 'reason')}: ${text(event, 'message')}`);

  test('kubectl describe shows the events of a check', async () => {
    check('dns', { runInterval: '1h', timeout: '30s' });
    check('silent', { runInterval: '1h', timeout: '10s' });
    await lead.begin();
    void lead.report(3, runOf('dns'), 'no answer', 'from 10.0.0.10');
    await lead.clock.advance(20_000);
    assert.equal(events().length, 4);
    assert.match(events().join('\n'), /^Normal PodCreated: created pod dns-\w{5}$/m);
    assert.match(events().join('\n'), /^Warning CheckReported: no answer; from 10\.0\.0\.10$/m);
    assert.match(events().join('\n'), /^Warning CheckRunTimedOut: check run \S+ exceeded .*10s/m);
    const [event] = lead.api.all('events') as [JsonObject];
    const { kind, uid } = child(event, 'involvedObject') as { kind?: unknown; uid?: unknown };
    assert.deepEqual([kind, uid], ['HealthCheck', 'uid-healthchecks-dns']);
  });

  test('repeated events are counted', async () => {
    check('dns', { runInterval: '12s', timeout: '10s' });
    await lead.begin();
    for (let count = 0; count < 5; count++) {
      void lead.report(3, runOf('dns'));
      await lead.clock.advance(12_000);
    }
    const told = lead.api.all('events').filter((event) => event['reason'] === 'CheckReported');
    assert.deepEqual(
      told.map(({ count }) => count),
      [5],
    );
  });

  test('a check with endless events writes only a few, and no run waits for them', async () => {
    check('busy', { runInterval: '1s', timeout: '10s' });
    await lead.begin();
    for (let count = 0; count < 100; count++) {
      void lead.report(3, runOf('busy'), `no ${count}`);
      await lead.clock.advance(2500);
    }
    assert.ok(lead.api.count(/^POST pods/) > 80);
    assert.ok(lead.api.all('events').length <= 25 + 10, String(lead.api.all('events').length));
    assert.ok(lead.events.dropped > 50);
  });

  test('500 reports with errors of 200 KB each take no memory once they are stored', async () => {
    for (let count = 0; count < 20; count++)
      check(`c${count}`, { runInterval: '5s', timeout: '4s' });
    await lead.begin();
    const before = usedMemory();
    for (let round = 0; round < 25; round++) {
      for (let count = 0; count < 20; count++)
        void lead.report(3, runOf(`c${count}`), `${round} ${count} ${'x'.repeat(200_000)}`);
      await lead.clock.advance(5000);
    }
    const grown = usedMemory() - before;
    assert.ok(events().length >= 400, `${events().length} events`);
    assert.ok(grown < 20e6, `${(grown / 1e6).toFixed(0)} MB`);
  });

  test('logs once that the API server rejects events, and continues the checks', async () => {
    lead.api.refuses = /events/;
    check('dns', { runInterval: '1h', timeout: '30s' });
    await lead.begin();
    const taken = lead.report(3, runOf('dns'), 'no answer');
    await lead.clock.advance(5000);
    assert.equal((await taken).status, 200);
    const told = lead.lines.filter((line) => line.includes('writing events'));
    assert.equal(told.length, 1, told.join('\n'));
    assert.equal(lead.events.dropped, 2);
  });

  test('10 000 requests for the events of a check cause one API request, and none for an unknown check', async () => {
    check('dns', { runInterval: '1h', timeout: '30s' });
    await lead.begin();
    const { api, clock, watch } = lead;
    const list = new EventList({ client: api, clock, watch });
    const { signal } = new AbortController();
    const all = Array.from({ length: 10_000 }, (_, index) =>
      list.of('team', index % 2 === 0 ? 'dns' : `no-${index}`, signal),
    );
    const [first, none] = await Promise.all(all);
    assert.equal(first?.[0]?.reason, 'PodCreated');
    assert.deepEqual(none, []);
    assert.equal(api.count(/^list events/), 1);
  });

  test('a requested run starts immediately, but not repeatedly', async () => {
    check('dns', { runInterval: '1h', timeout: '30s' });
    assert.equal(lead.runner.ask('team', 'dns'), 'follows');
    await lead.begin();
    assert.equal(lead.runner.ask('team', 'dns'), 'runs');
    void lead.report(3, runOf('dns'));
    await lead.clock.advance(1000);
    assert.equal(lead.runner.ask('team', 'dns'), 'too-soon');
    assert.equal(lead.runner.ask('team', 'none'), 'unknown');
    await lead.clock.advance(10_000);
    assert.equal(lead.runner.ask('team', 'dns'), 'begins');
    await lead.clock.advance(2000);
    assert.equal(lead.api.count(/^POST pods/), 2);
    assert.equal(lead.runner.ask('team', 'dns'), 'runs');
  });
});
