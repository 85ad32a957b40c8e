import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { Asker } from '../../../../test/kit/ask.ts';
import { serveProcess } from '../../../../test/kit/serve-process.ts';
import { TraceCollector, type CollectedSpan } from '../../../../test/kit/trace-collector.ts';
import { makeWorld } from '../../../../test/kit/world.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { seededRandom } from '../../base/random.ts';
import { SpanQueue } from './span-queue.ts';
import { TraceRecorder } from './recorder.ts';
import type { Span, SpanBatch } from './span.ts';

async function until(holds: () => boolean, what: string): Promise<void> {
  for (let tries = 0; !holds(); tries++) {
    assert.ok(tries < 400, `not within 20 s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function collector(t: TestContext): Promise<TraceCollector> {
  const made = await TraceCollector.start();
  t.after(() => made.close());
  return made;
}

const chain = `
  errors
  rewrite name old.example new.example
  template IN A new.example {
    answer "{{ .Name }} 60 IN A 192.0.2.1"
  }
  template IN AAAA . {
    rcode NXDOMAIN
  }`;

function checkTree(spans: readonly CollectedSpan[]): readonly string[] {
  const [root, ...more] = spans.filter(({ parent }) => parent === null);
  assert.ok(root !== undefined && more.length === 0);
  const byId = new Map(spans.map((span) => [span.id, span]));
  assert.equal(byId.size, spans.length);
  for (const span of spans) {
    assert.equal(span.trace, root.trace);
    if (span.parent === null) continue;
    const parent = byId.get(span.parent);
    assert.ok(parent !== undefined, `${span.name} is within nothing`);
    // Times are rounded to microseconds.
    assert.ok(span.start >= parent.start - 2, `${span.name} begins before ${parent.name}`);
    assert.ok(span.start + span.duration <= parent.start + parent.duration + 4, span.name);
  }
  return spans.map(({ name }) => name);
}

describe('trace', () => {
  for (const kind of ['zipkin', 'otlp'] as const) {
    test(`${kind}: a trace is one tree with a span per plugin`, { timeout: 60_000 }, async (t) => {
      const made = await collector(t);
      const server = await serveProcess(
        `trace ${kind} ${made.at} {\n service dns.test\n}\n${chain}`,
      );
      t.after(() => server.stop());
      const asker = await Asker.to(server.port);
      t.after(() => asker.close());
      assert.equal((await asker.ask('old.example.', 'A')).answer.length, 1);
      await asker.ask('b.example.', 'TXT');
      await until(() => made.spans.filter(({ parent }) => parent === null).length >= 2, 'traces');
      assert.deepEqual(made.problems, []);
      const traces = Map.groupBy(made.spans, ({ trace }) => trace);
      const found = [...traces.values()].find((spans) =>
        spans.some(({ tags }) => tags['coredns.io/name'] === 'old.example.'),
      );
      assert.ok(found !== undefined);
      const names = checkTree(found);
      for (const name of ['servedns', 'prometheus', 'errors', 'rewrite', 'template'])
        assert.ok(names.includes(name), `${name} among ${names.join(' ')}`);
      const root = found.find(({ parent }) => parent === null)!;
      assert.deepEqual(
        [root.service, root.name, root.isServer, root.error],
        ['dns.test', 'servedns', true, null],
      );
      assert.deepEqual(root.tags, {
        'coredns.io/name': 'old.example.',
        'coredns.io/type': 'A',
        'coredns.io/proto': 'udp',
        'coredns.io/remote': '127.0.0.1',
        'coredns.io/rcode': 'NOERROR',
      });
      const failed = [...traces.values()].flat().find(({ error }) => error !== null);
      assert.match(failed?.error ?? '', /no next plugin found/);
      assert.equal(failed?.tags['coredns.io/rcode'], 'SERVFAIL');
      await until(() => made.spans.length > 0, 'spans');
      assert.equal(await server.sum('ndots_trace_dropped_total'), 0);
    });
  }

  test('every: one in AMOUNT, and 0 disables tracing', { timeout: 60_000 }, async (t) => {
    const made = await collector(t);
    const server = await serveProcess(`trace ${made.at} {\n every 10\n}\n${chain}`, {});
    t.after(() => server.stop());
    const asker = await Asker.to(server.port);
    t.after(() => asker.close());
    for (let i = 0; i < 100; i++) await asker.ask('new.example.', 'A');
    await new Promise((resolve) => setTimeout(resolve, 2500));
    const roots = made.spans.filter(({ parent }) => parent === null).length;
    // Each worker counts separately.
    assert.ok(roots >= 8 && roots <= 10, `${roots} traces`);
    assert.deepEqual(made.problems, []);
  });

  test(
    'an unavailable, silent or refusing collector delays no answer, and lost spans are counted',
    { timeout: 90_000 },
    async (t) => {
      const made = await collector(t);
      made.status = 500;
      const server = await serveProcess(
        `trace ${made.at} {\n zipkin_max_backlog_size 50\n zipkin_max_batch_size 20\n}\n${chain}`,
      );
      t.after(() => server.stop());
      const asker = await Asker.to(server.port);
      t.after(() => asker.close());
      for (let i = 0; i < 50; i++) await asker.ask('new.example.', 'A');
      await until(() => made.requests > 0, 'a request');
      made.silent = true;
      for (let i = 0; i < 300; i++) await asker.ask('new.example.', 'A');
      assert.equal(asker.repeats, 0);
      let dropped = 0;
      for (let tries = 0; dropped < 300 && tries < 200; tries++) {
        await new Promise((resolve) => setTimeout(resolve, 100));
        dropped = await server.sum('ndots_trace_dropped_total');
      }
      assert.ok(dropped >= 300, `${dropped}`);
      assert.match(
        server.child.output(),
        /failed to send spans to http:\/\/127\.0\.0\.1:\d+\/api\/v2\/spans: HTTP status 500/,
      );
    },
  );

  test('a collector that never answers does not delay shutdown', { timeout: 60_000 }, async (t) => {
    const made = await collector(t);
    made.silent = true;
    const server = await serveProcess(`trace otlp ${made.at}\n${chain}`);
    t.after(() => server.stop());
    const asker = await Asker.to(server.port);
    t.after(() => asker.close());
    await asker.ask('new.example.', 'A');
    await until(() => made.requests > 0, 'a batch');
    await asker.ask('new.example.', 'A');
    server.child.signal('SIGTERM');
    assert.equal(await server.child.exitCode, 0, server.child.output());
  });

  test('metadata contains the ID', async () => {
    const world = await makeWorld(
      '. {\n metadata\n trace\n log . "{/trace/traceid}"\n template ANY ANY {\n rcode NXDOMAIN\n }\n}',
    );
    await world.ask('a.example. A');
    assert.match(world.log.at(-1) ?? '', /^\[INFO\] [0-9a-f]{16}$/);
    await world.close();
  });

  test("errors use CoreDNS's wording, and datadog users get an alternative", async () => {
    const cases: readonly (readonly [string, RegExp])[] = [
      ['trace a b c', /[Ww]rong argument count/],
      ['trace foobar localhost:8888', /tracing endpoint type 'foobar' is not supported/],
      ['trace datadog localhost:8126', /'datadog' is not supported/],
      ['trace {\n every\n}', /[Ww]rong argument count/],
      ['trace {\n every a\n}', /invalid|whole number|strconv/],
      ['trace {\n service\n}', /[Ww]rong argument count/],
      ['trace {\n client_server maybe\n}', /ParseBool/],
      ['trace {\n datadog_analytics_rate 2\n}', /RATE|between/],
      ['trace {\n zipkin_max_batch_interval 600\n}', /missing unit in duration/],
      ['trace {\n no_such\n}', /unknown property/],
    ];
    for (const [directive, message] of cases)
      await assert.rejects(makeWorld(`. {\n${directive}\n whoami\n}`), message, directive);
  });
});

describe("a worker's spans", () => {
  const span = (id: number): Span => ({
    trace: '0'.repeat(32),
    id: String(id),
    parent: null,
    name: 'servedns',
    startMs: 0,
    tookMs: 0,
    tags: {},
    error: null,
  });

  test('sizes out of range do not reject a Corefile, and queries are answered', async () => {
    const sizes = 'zipkin_max_backlog_size 5000000\n zipkin_max_batch_size 20000';
    const world = await makeWorld(
      `. {\n trace localhost:9411 {\n every 0\n ${sizes}\n }\n whoami\n}`,
    );
    assert.equal((await world.ask('a.example. A')).rcode, 0);
    await world.close();
  });

  test('one batch is in flight at a time, and the oldest are dropped if too many wait', () => {
    const sent: SpanBatch[] = [];
    const queue = new SpanQueue('w', 5, 2, (batch) => sent.push(batch));
    for (let id = 0; id < 10; id++) queue.add([span(id)], 0);
    assert.equal(sent.length, 1);
    queue.taken('another');
    assert.equal(sent.length, 1);
    queue.taken('w');
    assert.deepEqual(
      sent.map(({ spans, dropped }) => [spans.map(({ id }) => id), dropped]),
      [
        [['0', '1'], 0],
        [['5', '6'], 3],
      ],
    );
  });

  test('a query in a loop has a limited number of spans', () => {
    const recorder = new TraceRecorder(new VirtualClock(), seededRandom(1), 0);
    for (let i = 0; i < 1000; i++) {
      const entered = recorder.entered('x');
      recorder.done(entered);
      recorder.left(entered);
    }
    assert.equal(recorder.finish({}, null).length + recorder.dropped, 1001);
    assert.equal(recorder.finish({}, null).length, 128);
  });
});
