import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { VirtualClock } from '../../../src/server/base/virtual-clock.ts';
import { pod, service } from './populate.ts';
import { until } from './rig.ts';
import { ApiServer, type ApiServerOptions } from './server.ts';

type Json = Record<string, never> & {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: readonly { readonly metadata: { readonly name: string } }[];
  readonly code: number;
  readonly reason: string;
  readonly message: string;
};

async function started(t: TestContext, options: ApiServerOptions = {}): Promise<ApiServer> {
  const server = await ApiServer.start(options);
  t.after(() => server.stop());
  return server;
}

async function ask(
  server: ApiServer,
  path: string,
  init?: RequestInit,
): Promise<{ status: number; body: Json }> {
  const reply = await fetch(server.url + path, init);
  return { status: reply.status, body: (await reply.json()) as Json };
}

/** Reads a watch's events as they arrive. */
async function watch(
  t: TestContext,
  server: ApiServer,
  path: string,
): Promise<{ events: { type: string; object: Json }[]; ended: () => boolean }> {
  const stopping = new AbortController();
  t.after(() => stopping.abort());
  const reply = await fetch(server.url + path, { signal: stopping.signal });
  assert.equal(reply.status, 200);
  const events: { type: string; object: Json }[] = [];
  let over = false;
  const decoder = new TextDecoder();
  let rest = '';
  void (async () => {
    try {
      for await (const piece of reply.body!) {
        rest += decoder.decode(piece as Uint8Array, { stream: true });
        const lines = rest.split('\n');
        rest = lines.pop()!;
        for (const line of lines) events.push(JSON.parse(line) as (typeof events)[number]);
      }
    } catch {
      // The connection was cut or aborted, so the watch is over.
    }
    over = true;
  })();
  return { events, ended: () => over };
}

describe('a list', () => {
  test('in pages shows one state, despite changes in between', async (t) => {
    const server = await started(t);
    for (let i = 0; i < 25; i++) server.put('services', service(i));
    const first = await ask(server, '/api/v1/services?limit=10');
    server.delete('services', 'team-20', 'service-20');
    server.put('services', service(99));
    const names = first.body.items.map((item) => item.metadata.name);
    let next = first.body.metadata.continue;
    while (next !== undefined) {
      const page = await ask(server, `/api/v1/services?limit=10&continue=${next}`);
      assert.equal(page.body.metadata.resourceVersion, first.body.metadata.resourceVersion);
      names.push(...page.body.items.map((item) => item.metadata.name));
      next = page.body.metadata.continue;
    }
    assert.equal(new Set(names).size, 25);
    assert.ok(names.includes('service-20') && !names.includes('service-99'));
  });

  test('from the cache (version 0) is complete', async (t) => {
    const server = await started(t);
    for (let i = 0; i < 25; i++) server.put('services', service(i));
    const { body } = await ask(server, '/api/v1/services?limit=10&resourceVersion=0');
    assert.equal(body.items.length, 25);
  });

  test('that went on too long is gone (410)', async (t) => {
    const server = await started(t);
    for (let i = 0; i < 25; i++) server.put('services', service(i));
    const { body } = await ask(server, '/api/v1/services?limit=10');
    server.compact();
    const gone = await ask(server, `/api/v1/services?continue=${body.metadata.continue}`);
    assert.deepEqual([gone.status, gone.body.reason], [410, 'Expired']);
  });

  test('with wrong parameters is refused', async (t) => {
    const server = await started(t);
    for (const [query, status] of [
      ['limit=x', 400],
      ['resourceVersion=x', 400],
      ['resourceVersion=999999999', 504],
      ['labelSelector=a%20in%20b', 400],
      ['fieldSelector=spec.nothing=x', 400],
      ['sendInitialEvents=true', 422],
    ] as const) {
      assert.equal((await ask(server, `/api/v1/services?${query}`)).status, status, query);
    }
    assert.equal((await ask(server, '/api/v1/unheardof')).status, 404);
  });
});

describe('a watch', () => {
  test('continues from a version, and starts with all objects without one', async (t) => {
    const server = await started(t);
    server.put('services', service(0));
    const { body } = await ask(server, '/api/v1/services');
    server.put('services', service(1));
    server.delete('services', 'team-0', 'service-0');
    const from = await watch(
      t,
      server,
      `/api/v1/services?watch=1&resourceVersion=${body.metadata.resourceVersion}`,
    );
    await until(() => from.events.length === 2);
    assert.deepEqual(
      from.events.map((event) => event.type),
      ['ADDED', 'DELETED'],
    );
    const all = await watch(t, server, '/api/v1/services?watch=1');
    await until(() => all.events.length === 1);
    server.put('services', service(1));
    await until(() => all.events.length === 2);
    assert.equal(all.events[1]!.type, 'MODIFIED');
  });

  test('from a version too old gets an ERROR event and ends', async (t) => {
    const server = await started(t);
    server.put('services', service(0));
    const { body } = await ask(server, '/api/v1/services');
    server.compact();
    const late = await watch(
      t,
      server,
      `/api/v1/services?watch=1&resourceVersion=${body.metadata.resourceVersion}`,
    );
    await until(() => late.ended());
    assert.equal(late.events[0]!.type, 'ERROR');
    assert.equal(late.events[0]!.object.code, 410);
  });

  test('gets bookmarks once a minute if it wants them, and ends when its time is over', async (t) => {
    const clock = new VirtualClock();
    const server = await started(t, { clock });
    const version = (await ask(server, '/api/v1/services')).body.metadata.resourceVersion;
    const query = `watch=1&resourceVersion=${version}&timeoutSeconds=150`;
    const wants = await watch(t, server, `/api/v1/services?${query}&allowWatchBookmarks=true`);
    const plain = await watch(t, server, `/api/v1/services?${query}`);
    await clock.advance(151_000);
    await until(() => wants.ended() && plain.ended());
    assert.deepEqual(
      wants.events.map((event) => event.type),
      ['BOOKMARK', 'BOOKMARK'],
    );
    assert.deepEqual(plain.events, []);
  });

  test('sees an object that leaves its selection as deleted', async (t) => {
    const server = await started(t);
    server.put('pods', pod(0, 1));
    const watched = await watch(
      t,
      server,
      '/api/v1/pods?watch=1&fieldSelector=status.phase%3DRunning',
    );
    await until(() => watched.events.length === 1);
    const done = pod(0, 1);
    done['status'] = { phase: 'Succeeded' };
    server.put('pods', done);
    await until(() => watched.events.length === 2);
    assert.equal(watched.events[1]!.type, 'DELETED');
  });

  test('may begin as a list, which ends in a marked bookmark', async (t) => {
    const server = await started(t);
    server.put('services', service(0));
    const query =
      'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
    const watched = await watch(t, server, `/api/v1/services?${query}`);
    await until(() => watched.events.length === 2);
    const mark = watched.events[1]!.object.metadata as unknown as { annotations: object };
    assert.deepEqual(mark.annotations, { 'k8s.io/initial-events-end': 'true' });
    for (const [options, wrong] of [
      [{}, 'watch=1&sendInitialEvents=true'],
      [{}, 'watch=1&resourceVersionMatch=NotOlderThan'],
      [{ minor: 30 }, query],
      [{ streamingLists: false }, query],
    ] as const) {
      const other = await started(t, options);
      const { status, body } = await ask(other, `/api/v1/services?${wrong}`);
      assert.deepEqual([status, body.reason], [422, 'Invalid'], wrong);
    }
  });
});

test('requests without a known token are rejected', async (t) => {
  const server = await started(t, { tokens: ['secret'] });
  assert.equal((await ask(server, '/version')).status, 401);
  const headers = { authorization: 'Bearer secret' };
  assert.equal((await ask(server, '/version', { headers })).status, 200);
});
