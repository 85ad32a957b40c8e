import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { pod, service, slice } from '../../../../test/kit/apiserver/populate.ts';
import { elapse, makeRig, quiet, until, type Rig } from '../../../../test/kit/apiserver/rig.ts';

function fill(rig: Rig, services = 3): void {
  for (let i = 0; i < services; i++) {
    rig.server.put('services', service(i));
    rig.server.put('endpointslices', slice(i, i * 2, 2));
    rig.server.put('pods', pod(i, 1));
  }
}

async function synced(rig: Rig): Promise<void> {
  rig.start();
  await until(() => rig.source.synced);
  // All kinds are now being watched, so later changes arrive as events.
  await until(() => rig.server.watches.size === 4);
}

describe('a watch', () => {
  test('that is dropped continues where it was, without a new list', async () => {
    await using rig = await makeRig();
    fill(rig);
    await synced(rig);
    rig.heard.forget();
    rig.server.dropWatches();
    await until(() => rig.server.watches.size === 0);
    rig.server.put('services', service(7));
    await elapse(rig.clock, 5000, () => rig.heard.names('Service').includes('service-7'));
    // A single object is listed, only to check that the server has not gone back in time.
    for (const { query } of rig.server.requests('list', 'services'))
      assert.equal(query.get('limit'), '1');
    assert.equal(rig.heard.all.length, 1);
    const taken = rig.server.requests('watch', 'services').at(-1)!;
    assert.match(taken.query.get('resourceVersion')!, /^\d+$/);
    assert.equal(taken.query.get('sendInitialEvents'), null);
  });

  test('too old (410) lists again and reports only real differences, including deletions', async () => {
    for (const streamingLists of [true, false]) {
      await using rig = await makeRig({ server: { streamingLists } });
      fill(rig, 10);
      await synced(rig);
      rig.heard.forget();
      rig.server.dropWatches();
      await until(() => rig.server.watches.size === 0);
      rig.server.delete('services', 'team-4', 'service-4');
      rig.server.put('services', service(11));
      rig.server.put('services', service(5));
      rig.server.compact();
      await elapse(rig.clock, 5000, () => rig.heard.names('Service').includes('service-11'));
      await until(() => !rig.heard.names('Service').includes('service-4'));
      assert.deepEqual(rig.heard.all.map((change) => change.verb).sort(), ['delete', 'put']);
    }
  });

  test('that gets an ERROR event with code 410 lists again at once', async () => {
    await using rig = await makeRig();
    fill(rig);
    await synced(rig);
    rig.server.failWatches(410, 'too old resource version: 1 (2)', 'services');
    await until(() => rig.server.requests('watch', 'services').length === 2);
    const again = rig.server.requests('watch', 'services').at(-1)!;
    assert.equal(again.query.get('sendInitialEvents'), 'true');
    assert.deepEqual(rig.lines, []);
  });

  test('that gets another ERROR event reports it, waits and continues', async () => {
    await using rig = await makeRig();
    fill(rig);
    await synced(rig);
    rig.server.failWatches(500, 'etcdserver: leader changed', 'services');
    await until(() => rig.lines.length === 1);
    assert.match(rig.lines[0]!, /^\[WARNING\] list and watch of services: .*500.*leader changed/);
    assert.match(rig.lines[0]!, /still serving answers from .* ago/);
    await elapse(rig.clock, 5000, () => rig.server.watches.size === 4);
    assert.match(rig.lines.at(-1)!, /^\[INFO\] list and watch of services: works again/);
  });

  test('on a half-open connection is abandoned when bookmarks stop', async () => {
    await using rig = await makeRig();
    fill(rig);
    await synced(rig);
    const before = rig.server.requests('watch', 'services').length;
    rig.server.freezeWatches('services');
    rig.server.put('services', service(8));
    await elapse(rig.clock, 200_000, () => rig.heard.names('Service').includes('service-8'));
    assert.ok(rig.server.requests('watch', 'services').length > before);
    assert.match(rig.lines.join('\n'), /services: .* sent nothing for 150s/);
  });

  test('on a half-open connection to a server without bookmarks ends shortly after its timeout', async () => {
    await using rig = await makeRig({ server: { streamingLists: false } });
    fill(rig);
    await synced(rig);
    rig.server.freezeWatches('services');
    rig.server.put('services', service(8));
    await elapse(rig.clock, 640_000, () => rig.heard.names('Service').includes('service-8'));
  });

  test('requests a timeout of 5 to 10 minutes, different each time', async () => {
    await using rig = await makeRig();
    await synced(rig);
    const times = ['services', 'pods', 'namespaces', 'endpointslices'].map((kind) =>
      Number(rig.server.requests('watch', kind)[0]!.query.get('timeoutSeconds')),
    );
    assert.ok(times.every((seconds) => seconds >= 300 && seconds <= 600));
    assert.ok(new Set(times).size > 1);
    await elapse(rig.clock, 700_000, () => rig.server.requests('watch', 'services').length >= 2);
    assert.deepEqual(rig.lines, []);
  });

  test('for a version the server has never had ends in a new list', async () => {
    await using rig = await makeRig({ server: { streamingLists: false } });
    fill(rig);
    await synced(rig);
    const lists = rig.server.requests('list', 'services').length;
    const relisted = (): boolean => rig.server.requests('list', 'services').length > lists;
    for (let i = 0; i < 6 && !relisted(); i++) {
      const watches = rig.server.requests('watch', 'services').length;
      rig.server.failWatches(504, 'Too large resource version: 99999, current: 5', 'services');
      await elapse(
        rig.clock,
        120_000,
        () => rig.server.requests('watch', 'services').length > watches || relisted(),
      );
    }
    assert.ok(relisted());
  });
});

describe('a server that', () => {
  test('does not support streaming lists is asked for pages', async () => {
    await using rig = await makeRig({ server: { minor: 30 } });
    fill(rig);
    await synced(rig);
    assert.equal(rig.server.requests('list', 'services').length, 1);
    assert.deepEqual(rig.lines, []);
  });

  test('is too old for streaming lists is not asked for one', async () => {
    await using rig = await makeRig({ server: { minor: 26 } });
    fill(rig);
    await synced(rig);
    const asked = rig.server.seen.filter((one) => one.query.has('sendInitialEvents'));
    assert.deepEqual(asked, []);
  });

  test('loses the list between two pages gets one request for the whole list', async () => {
    await using rig = await makeRig({ server: { streamingLists: false, pagesFromCache: true } });
    fill(rig, 1200);
    rig.server.faults.add({
      resource: 'services',
      verb: 'list',
      times: 1,
      fault: { kind: 'status', status: 410 },
    });
    await synced(rig);
    assert.equal(rig.heard.names('Service').length, 1200);
    assert.equal(rig.server.requests('list', 'services').at(-1)!.query.get('limit'), null);
  });

  test('is unavailable gets retries at growing intervals', async () => {
    await using rig = await makeRig();
    rig.server.faults.add({ fault: { kind: 'drop' } });
    rig.start();
    await until(() => rig.lines.length > 0);
    await elapse(rig.clock, 120_000, () => rig.server.seen.length >= 12);
    const times = rig.server.seen.length;
    assert.ok(times < 60, `${times} requests in two minutes`);
    assert.equal(rig.source.synced, false);
    assert.match(rig.lines[0]!, /dropped the connection; trying again in/);
    assert.match(rig.lines[0]!, /none of them are known yet/);
    rig.server.faults.clear();
    await elapse(rig.clock, 120_000, () => rig.source.synced);
  });

  for (const [status, words] of [
    [403, /403 Forbidden.*ClusterRole must allow list and watch on services/],
    [500, /500 InternalError/],
    [503, /503 ServiceUnavailable/],
  ] as const) {
    test(`answers ${status} is waited for, and the log line suggests a fix`, async () => {
      await using rig = await makeRig();
      fill(rig);
      const lift = rig.server.faults.add({
        resource: 'services',
        fault: { kind: 'status', status },
      });
      rig.start();
      await until(() => rig.lines.length > 0);
      assert.match(rig.lines[0]!, words);
      await elapse(rig.clock, 3000, () => rig.heard.syncedKinds.length === 3);
      assert.equal(rig.source.synced, false);
      lift();
      await elapse(rig.clock, 60_000, () => rig.source.synced);
    });
  }

  test('answers 429 is left alone for as long as it requests', async () => {
    await using rig = await makeRig();
    fill(rig);
    rig.server.faults.add({
      resource: 'services',
      times: 1,
      fault: { kind: 'status', status: 429, headers: { 'retry-after': '20' } },
    });
    rig.start();
    await until(() => rig.server.requests('watch', 'services').length === 1);
    await rig.clock.advance(19_900);
    await quiet();
    assert.equal(rig.server.requests('watch', 'services').length, 1);
    await rig.clock.advance(200);
    await until(() => rig.source.synced);
  });

  test('answers with an absurd Retry-After gets a retry within about a minute', async () => {
    await using rig = await makeRig();
    fill(rig);
    rig.server.faults.add({
      resource: 'services',
      times: 1,
      fault: { kind: 'status', status: 503, headers: { 'retry-after': '100000' } },
    });
    rig.start();
    await until(() => rig.lines.length > 0);
    assert.match(rig.lines[0]!, /trying again in 1m/);
    await elapse(rig.clock, 61_000, () => rig.source.synced);
  });

  test('comes back from a backup is listed at once, because its versions are behind ours', async () => {
    await using rig = await makeRig();
    fill(rig);
    await synced(rig);
    const before = rig.server.watches.size;
    rig.server.failWatches(504, 'Too large resource version: 99999, current: 5', 'services');
    const lists = (): number =>
      rig.server
        .requests('watch', 'services')
        .filter(({ query }) => query.get('sendInitialEvents') === 'true').length;
    // Virtual time does not advance, so nothing waits.
    await until(() => lists() === 2 && rig.server.watches.size === before);
  });

  test('is restored from an older backup is listed at once, although no watch event reports it', async () => {
    for (const streamingLists of [true, false]) {
      await using rig = await makeRig({ server: { streamingLists } });
      fill(rig, 10);
      await synced(rig);
      const backup = rig.server.store.backup();
      for (let i = 10; i < 20; i++) rig.server.put('services', service(i));
      rig.server.delete('services', 'team-4', 'service-4');
      rig.server.put('endpointslices', slice(3, 90, 5));
      await until(() => !rig.heard.names('Service').includes('service-4'));
      rig.server.restore(backup);
      await elapse(rig.clock, 5000, () => rig.heard.names('Service').length === 10);
      assert.ok(rig.heard.names('Service').includes('service-4'));
      await until(() => rig.lines.length > 0);
      assert.match(rig.lines.join('\n'), /services.*version \d+ but was at \d+.*listing again/);
      // Later changes are followed as well.
      await elapse(rig.clock, 5000, () => rig.server.watches.size === 4);
      rig.server.put('services', service(30));
      await until(() => rig.heard.names('Service').includes('service-30'));
    }
  });

  test('is restored from an older backup while its watches stay open is listed when bookmarks stop', async () => {
    await using rig = await makeRig();
    fill(rig, 10);
    await synced(rig);
    const backup = rig.server.store.backup();
    for (let i = 10; i < 20; i++) rig.server.put('services', service(i));
    await until(() => rig.heard.names('Service').length === 20);
    rig.server.store.restore(backup);
    await elapse(rig.clock, 200_000, () => rig.heard.names('Service').length === 10);
  });

  test('sends a bookmark older than earlier ones is listed again', async () => {
    await using rig = await makeRig();
    fill(rig);
    await synced(rig);
    const asked = rig.server.requests('watch', 'services').length;
    const watch = [...rig.server.watches].find(({ resource }) => resource === 'services')!;
    const old = { metadata: { resourceVersion: '7' } };
    watch.raw(`${JSON.stringify({ type: 'BOOKMARK', object: old })}\n`);
    await elapse(rig.clock, 1000, () => rig.server.requests('watch', 'services').length > asked);
    const again = rig.server.requests('watch', 'services').at(-1)!;
    assert.equal(again.query.get('sendInitialEvents'), 'true');
  });

  test('falls silent during a list gets a retry, and no object is deleted until then', async () => {
    await using rig = await makeRig({ server: { streamingLists: false, pagesFromCache: true } });
    fill(rig, 100);
    await synced(rig);
    // The first request only compares versions.
    rig.server.faults.add({
      resource: 'services',
      verb: 'list',
      times: 2,
      fault: { kind: 'stall', afterBytes: 200 },
    });
    rig.heard.forget();
    rig.server.compact();
    rig.server.dropWatches('services');
    await elapse(rig.clock, 90_000, () => /sent nothing for 60s/.test(rig.lines.join('\n')));
    assert.deepEqual(rig.heard.all, []);
    await elapse(rig.clock, 60_000, () => rig.server.watches.size === 4);
    assert.deepEqual(rig.heard.all, []);
  });

  for (const streamingLists of [true, false]) {
    test(`sends a list very slowly is abandoned after a quarter of an hour (${streamingLists ? 'streamed' : 'in pages'})`, async () => {
      await using rig = await makeRig({ server: { streamingLists } });
      fill(rig);
      await synced(rig);
      rig.server.faults.add({
        resource: 'services',
        verb: streamingLists ? 'watch' : 'list',
        fault: { kind: 'drip', everyMs: 20_000 },
      });
      rig.server.failWatches(410, 'too old resource version: 1 (2)', 'services');
      await elapse(rig.clock, 1_500_000, () => rig.lines.length > 0);
      assert.match(
        rig.lines[0]!,
        /services: .* did not finish the list within 15m0s; .*still serving answers from .* ago/,
      );
      assert.equal(rig.heard.names('Service').length, 3);
    });
  }

  test('accepts a request and never answers is abandoned after 70 s', async () => {
    await using rig = await makeRig();
    fill(rig);
    rig.server.faults.add({ resource: 'services', times: 1, fault: { kind: 'hang' } });
    rig.start();
    await until(() => rig.server.requests('watch', 'services').length === 1);
    await elapse(rig.clock, 80_000, () => rig.source.synced);
    assert.match(rig.lines.join('\n'), /sent nothing for 70s/);
  });

  test('answers slowly is waited for without complaint', async () => {
    await using rig = await makeRig();
    fill(rig);
    rig.server.faults.add({ resource: 'services', fault: { kind: 'slow', delayMs: 40_000 } });
    rig.start();
    await elapse(rig.clock, 60_000, () => rig.source.synced);
    assert.deepEqual(rig.lines, []);
  });

  test('cuts a list short gets a retry, and the parts make one list', async () => {
    for (const streamingLists of [true, false]) {
      await using rig = await makeRig({ server: { streamingLists } });
      fill(rig, 100);
      rig.server.faults.add({
        resource: 'services',
        verb: streamingLists ? 'watch' : 'list',
        times: 1,
        fault: { kind: 'drop', afterBytes: 20_000 },
      });
      rig.start();
      await elapse(rig.clock, 5000, () => rig.source.synced);
      assert.equal(rig.heard.names('Service').length, 100);
    }
  });

  test('forgets each version right after listing it is listed less and less often', async () => {
    await using rig = await makeRig();
    fill(rig);
    await synced(rig);
    const lists = (): number =>
      rig.server
        .requests('watch', 'services')
        .filter(({ query }) => query.get('sendInitialEvents') === 'true').length;
    const before = lists();
    for (let passed = 0; passed < 120_000; passed += 500) {
      if (rig.server.watches.size === 4)
        rig.server.failWatches(410, 'too old resource version: 1 (2)', 'services');
      await quiet();
      await rig.clock.advance(500);
    }
    assert.ok(lists() - before > 3 && lists() - before < 15, String(lists() - before));
    assert.equal(rig.heard.names('Service').length, 3);
  });

  for (const [what, body] of [
    ['nulls', '{"kind":"ServiceList","metadata":{"resourceVersion":"9"},"items":[null,null]}'],
    ['numbers', '{"kind":"ServiceList","metadata":{"resourceVersion":"9"},"items":[1, 2]}'],
    ['texts', '{"kind":"ServiceList","metadata":{"resourceVersion":"9"},"items":["{}"]}'],
    ['something else', '{"kind":"Status","metadata":{"resourceVersion":"9"},"status":"Failure"}'],
  ] as const) {
    test(`lists ${what} removes nothing`, async () => {
      await using rig = await makeRig({ server: { streamingLists: false } });
      fill(rig);
      await synced(rig);
      rig.server.faults.add({
        resource: 'services',
        verb: 'list',
        times: 3,
        fault: { kind: 'status', status: 200, body },
      });
      rig.server.failWatches(410, 'too old resource version: 1 (2)', 'services');
      await elapse(rig.clock, 60_000, () => rig.lines.length > 0);
      assert.match(
        rig.lines[0]!,
        /services: .* sent an unexpected reply .*still serving answers from/,
      );
      await elapse(rig.clock, 60_000, () => rig.server.watches.size === 4);
      assert.deepEqual(
        rig.heard.all.filter(({ verb }) => verb === 'delete'),
        [],
      );
    });
  }

  test('sends endless objects fills only its memory limit, and known objects keep changing', async () => {
    const left: string[] = [];
    await using rig = await makeRig({
      source: { memory: 2 * 1024 * 1024, leftOut: (kind) => left.push(kind) },
    });
    fill(rig);
    await synced(rig);
    for (let i = 100; left.length === 0 && i < 100_000; i++) {
      rig.server.put('services', {
        metadata: { namespace: 'team-1', name: `${'long-'.repeat(40)}${i}` },
        spec: { type: 'ExternalName', externalName: `${'target.'.repeat(30)}example` },
      });
      if (i % 100 === 0) await quiet(1);
    }
    await until(() => left.length > 0);
    const [line] = rig.lines;
    assert.match(
      line!,
      /ERROR.* need more than apiserver_memory 2 MiB, so further objects are omitted/,
    );
    assert.equal(rig.lines.length, 1);
    const changed = service(1);
    rig.server.put('services', {
      ...changed,
      spec: { ...(changed['spec'] as object), clusterIP: '10.9.9.9', clusterIPs: ['10.9.9.9'] },
    });
    rig.server.delete('services', 'team-2', 'service-2');
    rig.heard.forget();
    await until(() => rig.heard.all.some(({ verb }) => verb === 'delete'));
    assert.match(JSON.stringify(rig.heard.all), /10\.9\.9\.9/);
  });

  test('sends something else (a proxy page) is recognized', async () => {
    await using rig = await makeRig({ server: { minor: 20 } });
    fill(rig);
    rig.server.faults.add({ resource: 'services', times: 1, fault: { kind: 'garbage' } });
    rig.start();
    await elapse(rig.clock, 5000, () => rig.source.synced);
    assert.match(
      rig.lines.join('\n'),
      /services: .* sent an unexpected reply to "list services": not JSON/,
    );
  });

  test('is upgraded and drops the old endpoint slices is asked for the new ones', async () => {
    await using rig = await makeRig({ server: { minor: 24 } });
    rig.server.faults.add({
      resource: 'endpointslices',
      verb: 'list',
      times: 1,
      fault: { kind: 'status', status: 404 },
    });
    fill(rig);
    await synced(rig);
    const path = (): string => rig.server.requests('watch', 'endpointslices').at(-1)!.path;
    assert.match(path(), /v1beta1/);
    rig.server.faults.add({
      resource: 'endpointslices',
      verb: 'watch',
      times: 1,
      fault: { kind: 'status', status: 404 },
    });
    rig.server.dropWatches('endpointslices');
    await elapse(rig.clock, 5000, () => /discovery.k8s.io\/v1\//.test(path()));
    assert.equal(rig.heard.names('EndpointSlice').length, 3);
  });
});

describe('an endless list', () => {
  for (const [of, verb, had] of [
    ['pages', 'list', '5 pages'],
    ['items', 'list', '100 items'],
    ['events', 'watch', '100 items'],
  ] as const)
    test(`of ${of} is abandoned, reported and requested again after a delay`, async () => {
      const counted: string[] = [];
      await using rig = await makeRig({
        server: { streamingLists: of === 'events' },
        source: {
          listMost: { items: 100, pages: 5 },
          failed: (kind) => counted.push(kind),
        },
      });
      fill(rig);
      const lift = rig.server.faults.add({
        resource: 'services',
        verb,
        fault: { kind: 'endless', of },
      });
      rig.start();
      await until(() => rig.lines.length === 1);
      assert.match(
        rig.lines[0]!,
        new RegExp(`has not ended the services list after ${had}.*what answers at that address`),
      );
      assert.deepEqual(counted, ['large']);
      const asked = (): number => rig.server.requests(verb, 'services').length;
      const before = asked();
      await rig.clock.advance(50_000);
      await quiet();
      assert.equal(asked(), before);
      // The objects from the endless list disappear with the first list that ends.
      lift();
      await elapse(rig.clock, 60_000, () => rig.source.synced);
      assert.equal(rig.heard.names('Service').length, 3);
      assert.match(rig.lines.join('\n'), /list and watch of services: works again/);
    });
});
