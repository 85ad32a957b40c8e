import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeLog } from '../../base/log.ts';
import { seededRandom } from '../../base/random.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { pod, service, slice } from '../../../../test/kit/apiserver/populate.ts';
import { makeRig, quiet, until, type Rig } from '../../../../test/kit/apiserver/rig.ts';
import type { ReflectedStore } from '../store/reflected-store.ts';
import type { ApiClient, ApiRequest } from './client.ts';
import { connectionFailure } from './failure.ts';
import { Reflector } from './reflector.ts';

async function synced(rig: Rig): Promise<void> {
  for (let i = 0; i < 3; i++) {
    rig.server.put('services', service(i));
    rig.server.put('endpointslices', slice(i, i * 2, 2));
    rig.server.put('pods', pod(i, 1));
  }
  rig.start();
  await until(() => rig.source.synced);
  await until(() => rig.server.watches.size === 4);
}

/** Advances virtual time in steps of a second. */
async function pass(rig: Rig, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 1000) {
    await rig.clock.advance(1000);
    await quiet(3);
  }
}

/**
 * Advances virtual time in steps of a tenth of a second.
 * @returns the time that passed, in milliseconds
 */
async function waited(rig: Rig, limitMs: number, holds: () => boolean): Promise<number> {
  for (let passed = 0; passed <= limitMs; passed += 100) {
    if (holds()) return passed;
    await rig.clock.advance(100);
    await quiet();
  }
  return Infinity;
}

describe('an API server that was unavailable', () => {
  for (const seed of [1, 2, 3]) {
    for (const awayMs of [8000, 66_000, 300_000]) {
      test(`for ${awayMs / 1000} s is watched again within 5 s, without a list (seed ${seed})`, async () => {
        await using rig = await makeRig({ source: { random: seededRandom(seed) } });
        await synced(rig);
        rig.server.faults.add({ fault: { kind: 'drop' } });
        rig.server.dropWatches();
        await pass(rig, awayMs);
        assert.equal(rig.server.watches.size, 0);
        rig.server.faults.clear();
        const seen = rig.server.seen.length;
        const tookMs = await waited(rig, 60_000, () => rig.server.watches.size === 4);
        assert.ok(tookMs <= 5000, `${tookMs}`);
        for (const { verb, query } of rig.server.seen.slice(seen)) {
          if (verb === 'list') assert.equal(query.get('limit'), '1');
          assert.equal(query.get('sendInitialEvents'), null);
        }
      });
    }
  }

  test('and starts with server errors is watched within 5 s of being ready', async () => {
    await using rig = await makeRig();
    await synced(rig);
    rig.server.faults.add({ fault: { kind: 'status', status: 500 } });
    rig.server.dropWatches();
    await pass(rig, 60_000);
    rig.server.faults.clear();
    const tookMs = await waited(rig, 60_000, () => rig.server.watches.size === 4);
    assert.ok(tookMs <= 5000, `${tookMs}`);
  });

  test('and specifies when to come back (Retry-After) is not contacted earlier, even by probes', async () => {
    await using rig = await makeRig();
    await synced(rig);
    const headers = { 'retry-after': '40' };
    rig.server.faults.add({ fault: { kind: 'status', status: 503, headers } });
    rig.server.dropWatches();
    await pass(rig, 5000);
    const seen = rig.server.seen.length;
    await pass(rig, 30_000);
    assert.equal(rig.server.seen.length, seen);
    rig.server.faults.clear();
    const tookMs = await waited(rig, 60_000, () => rig.server.watches.size === 4);
    assert.ok(tookMs <= 10_000, `${tookMs}`);
  });

  test('and has forgotten the versions is listed within 5 s', async () => {
    await using rig = await makeRig();
    await synced(rig);
    rig.server.faults.add({ fault: { kind: 'drop' } });
    rig.server.dropWatches();
    await pass(rig, 66_000);
    rig.server.compact();
    rig.server.put('services', service(9));
    rig.server.faults.clear();
    const tookMs = await waited(rig, 60_000, () => rig.heard.names('Service').length === 4);
    assert.ok(tookMs <= 5000, `${tookMs}`);
  });
});

describe('a source reports that the server is unavailable', () => {
  test('at the first failure', async () => {
    await using rig = await makeRig();
    rig.server.faults.add({ fault: { kind: 'drop' } });
    rig.start();
    await until(() => rig.heard.timesAway > 0);
    assert.equal(rig.clock.now(), 0);
  });

  test('after a second without data', async () => {
    await using rig = await makeRig();
    rig.server.faults.add({ fault: { kind: 'hang' } });
    rig.start();
    await until(() => rig.server.seen.length > 0);
    await rig.clock.advance(900);
    assert.equal(rig.heard.timesAway, 0);
    await rig.clock.advance(100);
    assert.equal(rig.heard.timesAway, 1);
  });

  test('never while lists arrive, and not once everything is known', async () => {
    await using rig = await makeRig();
    await synced(rig);
    await pass(rig, 3000);
    rig.server.faults.add({ fault: { kind: 'drop' } });
    rig.server.dropWatches();
    await pass(rig, 10_000);
    assert.equal(rig.heard.timesAway, 0);
  });
});

describe('restored permissions', () => {
  for (const status of [401, 403]) {
    for (const resources of [['services'], ['services', 'pods', 'namespaces', 'endpointslices']]) {
      test(`(${status}, ${resources.length} kinds) are used within 5 s per kind`, async () => {
        await using rig = await makeRig();
        await synced(rig);
        for (const resource of resources)
          rig.server.faults.add({ resource, fault: { kind: 'status', status } });
        rig.server.dropWatches();
        await pass(rig, 90_000);
        rig.server.faults.clear();
        const tookMs = await waited(rig, 60_000, () => rig.server.watches.size === 4);
        assert.ok(tookMs <= 5000, `${tookMs}`);
      });
    }
  }

  test('for some kinds only are used while others stay forbidden', async () => {
    await using rig = await makeRig();
    await synced(rig);
    const lift = ['services', 'pods', 'namespaces'].map((resource) =>
      rig.server.faults.add({ resource, fault: { kind: 'status', status: 403 } }),
    );
    rig.server.dropWatches();
    await pass(rig, 60_000);
    lift[0]!();
    const tookMs = await waited(rig, 60_000, () => rig.server.watches.size === 2);
    assert.ok(tookMs <= 10_000, `${tookMs}`);
  });
});

describe('a request that fails for a reason of its own', () => {
  for (const fault of [
    { verb: 'watch', fault: { kind: 'status', status: 403 } },
    { fault: { kind: 'status', status: 500 } },
    { fault: { kind: 'drop' } },
    { verb: 'watch', fault: { kind: 'drop' } },
  ] as const) {
    test(`is not repeated more often because probes succeed (${JSON.stringify(fault)})`, async () => {
      await using rig = await makeRig();
      await synced(rig);
      rig.server.faults.add({ resource: 'services', ...fault });
      rig.server.dropWatches('services');
      const before = rig.server.seen.length;
      await pass(rig, 300_000);
      const times = rig.server.seen.slice(before).filter((one) => one.resource === 'services');
      assert.ok(times.length < 60, `${times.length} in five minutes`);
    });
  }
});

test('300 replicas return within 5 s, with at most 1 000 requests in any second', async () => {
  const clock = new VirtualClock();
  let away = false;
  const perSecond = new Map<number, number>();
  const cuts = new Set<() => void>();
  const count = (): void => {
    const second = Math.floor(clock.now() / 1000);
    perSecond.set(second, (perSecond.get(second) ?? 0) + 1);
  };
  const makeClient = (): ApiClient => ({
    host: 'api',
    close: () => undefined,
    async stream(request: ApiRequest) {
      count();
      const refused = (code: string): Error => connectionFailure({ code }, 'api');
      if (away) throw refused('ECONNREFUSED');
      if (!request.watch) {
        request.into.push(Buffer.from('{"metadata":{"resourceVersion":"7"},"items":[]}'));
        return;
      }
      request.began?.();
      await new Promise<void>((resolve, reject) => {
        const cut = (): void => {
          cuts.delete(cut);
          reject(refused('ECONNRESET'));
        };
        cuts.add(cut);
        request.signal.addEventListener('abort', () => resolve());
      });
    },
  });
  const store: ReflectedStore<object, never> = {
    size: 0,
    bytes: 0,
    put: () => undefined,
    remove: () => undefined,
    beginList: () => undefined,
    endList: () => undefined,
  };
  const reflectors: Reflector<object, never>[] = [];
  for (let replica = 0; replica < 300; replica++) {
    const client = makeClient();
    const random = seededRandom(replica + 1);
    for (const name of ['services', 'endpointslices', 'namespaces', 'pods'])
      reflectors.push(
        new Reflector({
          client,
          resource: {
            forms: [{ name, path: `/api/v1/${name}`, transform: () => [] }],
          } as never,
          store,
          clock,
          random,
          log: makeLog(() => undefined),
          listed: () => undefined,
        }),
      );
  }
  for (const reflector of reflectors) reflector.start();
  await clock.advance(1000);
  assert.equal(cuts.size, 1200);
  perSecond.clear();
  away = true;
  for (const cut of [...cuts]) cut();
  for (let second = 0; second < 66; second++) await clock.advance(1000);
  const probes = Math.max(...[...perSecond.entries()].slice(20).map(([, times]) => times));
  away = false;
  const backAt = clock.now();
  perSecond.clear();
  while (cuts.size < 1200 && clock.now() - backAt < 60_000) await clock.advance(100);
  const tookMs = clock.now() - backAt;
  const peak = Math.max(...perSecond.values());
  await Promise.all(reflectors.map((reflector) => reflector.stop()));
  assert.ok(tookMs <= 5000, `${tookMs} ms`);
  assert.ok(peak <= 1000, `${peak} requests in one second after the return`);
  assert.ok(probes <= 400, `${probes} requests in one second while it is away`);
});
