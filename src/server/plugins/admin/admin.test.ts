import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request, type IncomingHttpHeaders } from 'node:http';
import { request as secureRequest } from 'node:https';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { VirtualClock } from '../../base/virtual-clock.ts';
import type { CacheReport } from '../cache/control.ts';
import { testCertificate, testKey } from '../../../../test/kit/certificate.ts';
import { scriptedNetwork } from '../../../../test/kit/upstream.ts';
import { makeWorld, type World } from '../../../../test/kit/world.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-admin-'));
after(() => rmSync(directory, { recursive: true }));
const at = '127.0.0.1:0';

function serve(admin = `admin ${at}`, cache = 'cache'): Promise<World> {
  const clock = new VirtualClock();
  const network = scriptedNetwork(clock, ({ name }) =>
    name.startsWith('missing')
      ? { rcode: 'NXDOMAIN', authority: ['example. 60 SOA ns.example. host.example. 1 2 3 4 60'] }
      : { answer: ['@ 300 A 192.0.2.1'] },
  );
  return makeWorld(
    `.:53 {\n prometheus ${at}1\n ${admin}\n ${cache}\n forward . 192.0.2.53\n}`.replace(
      `${at}1`,
      at,
    ),
    { clock, network, directory },
  );
}

interface Told {
  readonly status: number;
  readonly text: string;
}

function send(
  world: World,
  query: string,
  options: {
    readonly headers?: IncomingHttpHeaders;
    readonly method?: string;
    readonly address?: string;
    readonly ca?: string;
    readonly cert?: string;
    readonly key?: string;
  } = {},
): Promise<Told> {
  const { headers = { 'ndots-admin': '1' }, method = 'POST', address = at, ...tls } = options;
  const ask = tls.ca === undefined ? request : secureRequest;
  return new Promise((resolve, reject) => {
    const port = world.server.httpPort(address);
    const path = `/v1/command?${query}`;
    ask({ host: '127.0.0.1', port, path, method, headers, agent: false, ...tls }, (response) => {
      const pieces: Buffer[] = [];
      response.on('data', (piece: Buffer) => pieces.push(piece));
      response.on('end', () =>
        resolve({ status: response.statusCode!, text: Buffer.concat(pieces).toString() }),
      );
    })
      .on('error', reject)
      .end();
  });
}

async function reports(world: World, query: string): Promise<readonly CacheReport[]> {
  const { status, text } = await send(world, query);
  assert.equal(status, 200, text);
  return (JSON.parse(text) as { results: readonly CacheReport[] }).results;
}

describe('admin', () => {
  test('explain lists the cache entries for a name: client kind, time left, hits and source', async () => {
    const world = await serve();
    await world.ask('www.example. A');
    await world.clock.advance(10_000);
    await world.ask('WWW.example. A');
    await world.ask('www.example. A', { dnssecOk: true });
    await world.ask('missing.www.example. AAAA');
    await world.ask('other.example. A');
    const [report] = await reports(world, 'command=cache/explain&name=Www.Example');
    assert.deepEqual(
      { ...report, told: report!.told.map(({ worker, found, size }) => ({ worker, found, size })) },
      {
        servers: ['dns://:53'],
        zones: ['.'],
        view: '',
        workers: 1,
        told: [{ worker: 0, found: 2, size: 4 }],
      },
    );
    const entry = {
      name: 'www.example.',
      type: 'A',
      class: 'IN',
      checkingDisabled: false,
      rcode: 'NOERROR',
      half: 'success',
      storedTtl: 300,
      from: 'forward 192.0.2.53:53',
      bytes: 45,
    };
    assert.deepEqual(report!.told[0]!.entries, [
      { ...entry, dnssecOk: false, ttl: 290, hits: 1 },
      { ...entry, dnssecOk: true, ttl: 300, hits: 0 },
    ]);
    const [below] = await reports(world, 'command=cache/explain&name=www.example&below=true');
    assert.deepEqual(
      below!.told[0]!.entries.map(({ name, type, rcode, half, ttl }) => ({
        name,
        type,
        rcode,
        half,
        ttl,
      }))[2],
      { name: 'missing.www.example.', type: 'ANY', rcode: 'NXDOMAIN', half: 'denial', ttl: 60 },
    );
    await world.close();
  });

  test('flushed entries are queried again, and no others', async () => {
    const world = await serve();
    for (const name of ['www.example.', 'a.www.example.', 'awww.example.', 'example.'])
      await world.ask(`${name} A`);
    assert.equal(
      (await reports(world, 'command=cache/flush&name=www.example'))[0]!.told[0]!.found,
      1,
    );
    const left = async (): Promise<readonly string[]> =>
      (await reports(world, 'command=cache/explain&name=.&below=true'))[0]!.told[0]!.entries.map(
        ({ name }) => name,
      ).toSorted();
    assert.deepEqual(await left(), ['a.www.example.', 'awww.example.', 'example.']);
    await reports(world, 'command=cache/flush&name=www.example&below=true');
    assert.deepEqual(await left(), ['awww.example.', 'example.']);
    assert.match(world.metrics(), /coredns_cache_entries\{[^}]*type="success"[^}]*\} 2\n/);
    await reports(world, 'command=cache/flush&name=.&below=true');
    assert.deepEqual(await left(), []);
    await world.close();
  });

  test('an expired entry is listed as stale, with its age', async () => {
    const world = await serve(`admin ${at}`, 'cache {\n serve_stale\n}');
    await world.ask('www.example. A');
    await world.clock.advance(400_000);
    const [report] = await reports(world, 'command=cache/explain&name=www.example');
    assert.equal(report!.told[0]!.entries[0]!.ttl, -100);
    await world.close();
  });

  test('without a cache, or for an invalid name or argument, the reason is returned', async () => {
    const bare = await makeWorld(`.:53 {\n admin ${at}\n whoami\n}`);
    assert.deepEqual(await send(bare, 'command=cache/explain&name=a.'), {
      status: 404,
      text: 'no plugin in this configuration provides "cache/explain"\n',
    });
    await bare.close();
    const world = await serve();
    for (const [query, status] of [
      ['command=cache/explain', 400],
      [`command=cache/explain&name=${'a'.repeat(64)}.`, 400],
      ['command=cache/explain&name=a..b', 400],
      ['command=cache/explain&name=a&limit=501', 400],
      ['command=__proto__&name=a', 404],
      ['', 404],
      ['%', 404],
    ] as const)
      assert.equal((await send(world, query)).status, status, query);
    assert.match(world.metrics(), /ndots_admin_requests_total\{status="400"\} 4/);
    await world.close();
  });

  test('a web page cannot send commands, because the header and the host are checked', async () => {
    const world = await serve();
    const query = 'command=cache/flush&name=.&below=true';
    assert.equal((await send(world, query, { headers: {} })).status, 401);
    const rebound = { 'ndots-admin': '1', host: 'evil.example:9154' };
    assert.equal((await send(world, query, { headers: rebound })).status, 403);
    assert.equal((await send(world, query, { method: 'GET' })).status, 405);
    for (const host of ['localhost:9154', '[::1]:9154', '127.0.0.1'])
      assert.equal(
        (await send(world, query, { headers: { 'ndots-admin': '1', host } })).status,
        200,
      );
    await world.close();
  });

  test('with a token, only clients that send it are accepted, even after it changes', async () => {
    const file = join(directory, 'token');
    writeFileSync(file, 'a-secret-of-some-length\n');
    const address = ':0';
    const world = await serve(`admin ${address} {\n token_file ${file}\n}`);
    const query = 'command=cache/explain&name=a';
    const status = async (token: string): Promise<number> =>
      (
        await send(world, query, {
          address,
          headers: { 'ndots-admin': token, host: 'dns.example' },
        })
      ).status;
    assert.equal(await status('a-secret-of-some-length'), 200);
    assert.equal(await status('a-secret-of-some-lengt'), 403);
    assert.equal(await status(''), 403);
    writeFileSync(file, 'another-secret-of-some-length');
    assert.equal(await status('a-secret-of-some-length'), 403);
    assert.equal(await status('another-secret-of-some-length'), 200);
    rmSync(file);
    assert.equal(await status('another-secret-of-some-length'), 503);
    assert.ok(world.log.some((line) => /plugin\/admin: token_file cannot be read/.test(line)));
    await world.close();
  });

  test('with a CA, only clients whose certificate it signed are accepted', async () => {
    writeFileSync(join(directory, 'cert.pem'), testCertificate);
    writeFileSync(join(directory, 'key.pem'), testKey);
    const address = ':0';
    const world = await serve(`admin ${address} {\n tls cert.pem key.pem cert.pem\n}`);
    const query = 'command=cache/explain&name=a';
    const ca = testCertificate;
    const own = { cert: testCertificate, key: testKey };
    assert.equal((await send(world, query, { address, ca, ...own })).status, 200);
    await assert.rejects(send(world, query, { address, ca }));
    await world.close();
  });

  test('a publicly reachable address is refused without a token or a CA', async () => {
    writeFileSync(join(directory, 'short'), 'secret');
    for (const [admin, problem] of [
      ['admin :0', /is reachable from other machines/],
      ['admin 0.0.0.0:0', /is reachable from other machines/],
      ['admin 192.0.2.1:9154', /is reachable from other machines/],
      ['admin localhost.example:0', /is reachable from other machines/],
      ['admin :0 {\n tls cert.pem key.pem\n}', /is reachable from other machines/],
      ['admin :0 {\n token_file nowhere\n}', /token_file cannot be read/],
      ['admin :0 {\n token_file short\n}', /has 6 characters, but at least 16/],
    ] as const)
      await assert.rejects(serve(admin), problem, admin);
  });

  test('incomplete requests and many connections do not block commands', async () => {
    const world = await serve();
    const port = world.server.httpPort(at)!;
    const halves = Array.from({ length: 400 }, () => {
      const socket = connect(port, '127.0.0.1').on('error', () => undefined);
      socket.write('POST /v1/command?command=cache/flush&name=a HTTP/1.1\r\nHost: local');
      return socket;
    });
    await new Promise((resolve) => setTimeout(resolve, 200));
    await reports(world, 'command=cache/explain&name=a');
    for (const socket of halves) socket.destroy();
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => send(world, 'command=cache/explain&name=a')),
    );
    assert.ok(answers.every(({ status }) => status === 200 || status === 503));
    assert.ok(answers.some(({ status }) => status === 200));
    await world.close();
  });
});
