import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { makeLog } from '../../base/log.ts';
import { Collection } from '../../metrics/collection.ts';
import { SharedRegistry } from '../../metrics/shared-registry.ts';
import { readWebConfig } from './web-config.ts';
import { strangerCertificate, testCertificate, testKey } from '../../../../test/kit/certificate.ts';
import { httpAddress, HttpListeners } from '../../engine/control/http-listeners.ts';

interface Secured {
  readonly port: number;
  readonly lines: string[];
  readonly metrics: () => string;
  readonly close: () => Promise<void>;
  put(file: 'cert.pem' | 'key.pem', text: string): void;
}

async function open(t: TestContext, connections = 8): Promise<Secured> {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-https-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const put: Secured['put'] = (file, text) => writeFileSync(join(directory, file), text);
  put('cert.pem', testCertificate);
  put('key.pem', testKey);
  const web = join(directory, 'web.yml');
  writeFileSync(web, 'tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n');
  const lines: string[] = [];
  const collection = new Collection();
  const listeners = new HttpListeners(
    makeLog((line) => lines.push(line)),
    new SharedRegistry((event) => collection.add('main', event)),
    connections,
  );
  const address = '127.0.0.1:0';
  const hello = (_: unknown, response: { end(text: string): void }): void => response.end('hello');
  const paths = new Map([['/hello', hello as never]]);
  const plan = new Map([[httpAddress(address), { paths, tls: await readWebConfig(web) }]]);
  await listeners.open(plan);
  await listeners.commit(plan);
  t.after(() => listeners.close());
  const metrics = (): string => collection.print('text');
  const close = (): Promise<void> => listeners.close();
  return { port: listeners.port(address)!, lines, metrics, close, put };
}

function ask(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path: '/hello', ca: testCertificate, agent: false };
    get(options, (answer) => {
      answer.setEncoding('utf8');
      let text = '';
      answer.on('data', (chunk: string) => (text += chunk));
      answer.on('end', () => resolve(text));
    }).on('error', reject);
  });
}

const closed = (socket: Socket): Promise<void> =>
  socket.destroyed ? Promise.resolve() : new Promise((resolve) => socket.once('close', resolve));

describe('HTTPS', () => {
  test('connections that never complete the handshake are limited, and new ones are served', async (t) => {
    const { port, metrics } = await open(t, 8);
    const silent: Socket[] = [];
    t.after(() => silent.forEach((socket) => socket.destroy()));
    for (let i = 0; i < 40; i++) {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => undefined);
      silent.push(socket);
      await new Promise((resolve) => socket.once('connect', resolve));
      socket.resume();
    }
    await Promise.all(silent.slice(0, 32).map(closed));
    assert.ok(
      silent.slice(33).every((socket) => !socket.destroyed),
      'the last ones stay',
    );
    assert.equal(await ask(port), 'hello');
    assert.match(metrics(), /^ndots_http_evicted_total\{address="127\.0\.0\.1:0"\} 33$/m);
  });

  test('connections after the handshake do not count towards that limit', async (t) => {
    const { port } = await open(t, 4);
    const sockets: TLSSocket[] = [];
    t.after(() => sockets.forEach((socket) => socket.destroy()));
    for (let i = 0; i < 4; i++) {
      const socket = connectTls({ host: '127.0.0.1', port, ca: testCertificate });
      sockets.push(socket);
      await new Promise((resolve) => socket.once('secureConnect', resolve));
    }
    const silent = connect(port, '127.0.0.1');
    t.after(() => silent.destroy());
    await new Promise((resolve) => silent.once('connect', resolve));
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.ok(sockets.every((socket) => !socket.destroyed));
  });

  test('an address is closed at once, even during a handshake', async (t) => {
    const { port, close } = await open(t);
    const silent = connect(port, '127.0.0.1');
    t.after(() => silent.destroy());
    await new Promise((resolve) => silent.once('connect', resolve));
    silent.on('error', () => undefined).resume();
    await close();
    await closed(silent);
  });

  for (const [what, text] of [
    ['empty', ''],
    ['half written', testCertificate.slice(0, testCertificate.length / 2)],
    ["somebody else's", strangerCertificate],
  ] as const) {
    test(`a certificate that is ${what} leaves the previous one in use, and is logged once`, async (t) => {
      const { port, lines, put } = await open(t);
      put('cert.pem', text);
      for (let i = 0; i < 5; i++) assert.equal(await ask(port), 'hello');
      assert.equal(lines.length, 1, lines.join('\n'));
      assert.match(lines[0]!, /certificate of an HTTP address/);
      put('cert.pem', testCertificate);
      assert.equal(await ask(port), 'hello');
      put('cert.pem', text);
      assert.equal(await ask(port), 'hello');
      assert.equal(lines.length, 2);
    });
  }

  test('an empty key at startup is an error', async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'ndots-https-'));
    t.after(() => rmSync(directory, { recursive: true }));
    writeFileSync(join(directory, 'cert.pem'), testCertificate);
    writeFileSync(join(directory, 'key.pem'), '');
    const web = join(directory, 'web.yml');
    writeFileSync(web, 'tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n');
    await assert.rejects(readWebConfig(web), /key\.pem is empty/);
  });
});
