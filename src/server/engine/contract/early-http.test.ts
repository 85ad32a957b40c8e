import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { openEarly, probeAddresses, takeEarly } from './early-http.ts';

const plugins = new Map([
  ['health', 8080],
  ['ready', 8181],
]);

describe('probe addresses, before a Corefile is read', () => {
  const addresses = (text: string): readonly string[] =>
    probeAddresses(text, plugins).map(({ host, port }) => `${host}:${port}`);

  for (const [what, text, wanted] of [
    ['usual ones', '. {\n  health {\n    lameduck 5s\n  }\n  ready\n}', [':8080', ':8181']],
    [
      'ones of their own',
      '. {\n health 127.0.0.1:1\n ready :82 { # x\n }\n}',
      ['127.0.0.1:1', ':82'],
    ],
    ['every address', '. {\n ready 0.0.0.0:82\n health localhost:83\n}', [':82', '127.0.0.1:83']],
    ['one in two blocks', '. {\n ready\n}\na. {\n ready\n}', [':8181']],
    ['comments', '. {\n # ready\n health # here\n}', [':8080']],
    ['what only begins so', '. {\n readyness\n forward . 1.1.1.1 {\n  health_check 5s\n }\n}', []],
    [
      'what the parser has to see',
      '. {\n ready {$AT}\n health [::1]:80\n ready "x"\n ready :x\n}',
      [],
    ],
    ['ports that cannot be', '. {\n ready :0\n health :65536\n}', []],
    ['line ends of Windows', '. {\r\n ready\r\n}\r\n', [':8181']],
  ] as const)
    test(what, () => assert.deepEqual(addresses(text), wanted));
});

test('the start goes on if other programs listen on all of these ports', async (t) => {
  const taken = [createServer(), createServer()];
  const ports: number[] = [];
  for (const server of taken) {
    await once(server.listen(0), 'listening');
    ports.push((server.address() as AddressInfo).port);
  }
  const directory = mkdtempSync(join(tmpdir(), 'ndots-early-'));
  t.after(() => {
    for (const server of taken) server.close();
    rmSync(directory, { recursive: true });
  });
  const corefile = join(directory, 'Corefile');
  writeFileSync(corefile, `. {\n health :${ports[0]}\n ready :${ports[1]}\n}\n`);
  await openEarly(['-conf', corefile], plugins);
  assert.deepEqual(
    ports.map((port) => takeEarly('', port)),
    [null, null],
  );
});
