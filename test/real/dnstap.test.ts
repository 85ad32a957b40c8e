import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { readMessage } from '../../src/server/wire/message.ts';
import { TAP } from '../../src/server/wire/dnstap.ts';
import { printAddress } from '../../src/server/base/ip.ts';
import { testCertificate, testKey } from '../kit/certificate.ts';
import { missing } from '../kit/dig.ts';
import { DnstapCollector, DnstapReader, until } from '../kit/dnstap-collector.ts';
import { start } from '../kit/child.ts';
import { freePorts } from '../kit/free-ports.ts';
import { serveProcess, type ServeProcess } from '../kit/serve-process.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-tap-'));
after(() => rmSync(directory, { recursive: true, force: true }));

const skip = missing('dig');

/** dig's output for the server's reply. */
function ask({ port }: ServeProcess, ...words: readonly string[]): string {
  const all = ['+time=3', '+tries=1', '@127.0.0.1', '-p', String(port), ...words];
  return execFileSync('dig', all, { encoding: 'utf8' });
}

describe('dnstap over TLS', { skip: skip ?? false }, () => {
  const files = { cert: join(directory, 'cert.pem'), key: join(directory, 'key.pem') };
  writeFileSync(files.cert, testCertificate);
  writeFileSync(files.key, testKey);

  test('a collector whose certificate is not signed by a known CA gets nothing, unless that is allowed', async (t) => {
    const there = await DnstapCollector.listen({ tls: { cert: testCertificate, key: testKey } });
    t.after(() => there.close());
    const doubtful = await serveProcess(`  dnstap tls://127.0.0.1:${there.port}\n  whoami`);
    t.after(() => doubtful.stop());
    ask(doubtful, 'www.example.org', 'A');
    await until(
      () => /No connection to dnstap endpoint: .*certificate/.test(doubtful.child.output()),
      'the reason',
    );
    assert.equal(there.messages.length, 0);
    const server = await serveProcess(
      `  dnstap tls://127.0.0.1:${there.port} full {\n  skipverify\n  }\n  whoami`,
    );
    t.after(() => server.stop());
    ask(server, 'www.example.org', 'A');
    await until(() => there.messages.length === 2, 'query and reply');
    assert.deepEqual(
      there.messages.map(({ type }) => type),
      [TAP.CLIENT_QUERY, TAP.CLIENT_RESPONSE],
    );
  });

  test('sinks that connect must show a certificate of the authority that is named', async (t) => {
    const [port] = await freePorts(1);
    const server = await serveProcess(
      `  dnstap listen tls://127.0.0.1:${port} {\n  tls ${files.cert} ${files.key} ${files.cert}\n  }\n  whoami`,
    );
    t.after(() => server.stop());
    const sink = (own: object): DnstapReader => {
      const socket = connectTls({ port, host: '127.0.0.1', ca: testCertificate, ...own });
      t.after(() => socket.destroy());
      return new DnstapReader(socket);
    };
    const stranger = sink({});
    const known = sink({ cert: testCertificate, key: testKey });
    await until(() => known.controls.length >= 2, 'the handshake');
    ask(server, 'www.example.org', 'A');
    await until(() => known.messages.length === 2, 'query and reply');
    assert.deepEqual([stranger.controls, stranger.messages], [[], []]);
  });
});

describe('dnstap from a running server', { skip: skip ?? false }, () => {
  test('queries, replies and upstream exchanges, with the messages as sent', async (t) => {
    const path = join(directory, 'all.sock');
    const there = await DnstapCollector.listen({ path });
    t.after(() => there.close());
    const upstream = await serveProcess('  whoami');
    t.after(() => upstream.stop());
    const server = await serveProcess(
      `  metadata
  dnstap unix://${path} full {
    identity ns1
    version v1
    extra "{type} {/forward/upstream}"
  }
  forward . 127.0.0.1:${upstream.port}`,
    );
    t.after(() => server.stop());
    const begun = Date.now();
    ask(server, 'www.example.org', 'A');
    ask(server, '+tcp', 'www.example.org', 'AAAA');
    await until(() => there.messages.length === 8, 'eight messages');
    const { messages } = there;
    assert.deepEqual(
      messages.map(({ type, protocol, extra }) => [type, protocol, extra]),
      [
        [TAP.CLIENT_QUERY, 'udp', 'A -'],
        [TAP.FORWARDER_QUERY, 'udp', 'A -'],
        [TAP.FORWARDER_RESPONSE, 'udp', 'A -'],
        [TAP.CLIENT_RESPONSE, 'udp', `A 127.0.0.1:${upstream.port}`],
        [TAP.CLIENT_QUERY, 'tcp', 'AAAA -'],
        [TAP.FORWARDER_QUERY, 'tcp', 'AAAA -'],
        [TAP.FORWARDER_RESPONSE, 'tcp', 'AAAA -'],
        [TAP.CLIENT_RESPONSE, 'tcp', `AAAA 127.0.0.1:${upstream.port}`],
      ],
    );
    const ids: number[] = [];
    for (const message of messages) {
      assert.deepEqual([message.identity, message.version, message.family], ['ns1', 'v1', 4]);
      assert.ok(message.queryMs! >= begun - 1000 && message.queryMs! <= Date.now() + 1000);
      const asks = message.type === TAP.CLIENT_QUERY || message.type === TAP.FORWARDER_QUERY;
      const bytes = asks ? message.queryMessage : message.responseMessage;
      const { id, question } = readMessage(bytes!);
      assert.equal(question[0]!.name, 'www.example.org.');
      ids.push(id);
      if (!asks) assert.ok(message.responseMs! >= message.queryMs!);
      const address = message.queryAddress ?? message.responseAddress;
      assert.equal(printAddress(address!), '127.0.0.1');
      if (message.responseAddress !== null) assert.equal(message.responsePort, upstream.port);
    }
    // Readers pair messages by id, so a query and its reply have the same one, also towards the upstream.
    assert.deepEqual(ids, [
      ...Array.from({ length: 4 }, () => ids[0]!),
      ...Array.from({ length: 4 }, () => ids[4]!),
    ]);
    assert.equal(await server.sum('ndots_dnstap_lost_total'), 0);
  });

  test('a collector that reads nothing does not delay answers', async (t) => {
    const path = join(directory, 'slow.sock');
    const there = await DnstapCollector.listen({ path }, true);
    t.after(() => there.close());
    const server = await serveProcess(`  dnstap ${path} full\n  whoami`);
    t.after(() => server.stop());
    await until(() => there.sockets.length === 1, 'the connection');
    there.sockets[0]!.pause();
    for (let round = 0; round < 20; round++)
      assert.match(ask(server, 'x.example.'), /status: NOERROR/);
  });

  test('over TCP, and from a listener', async (t) => {
    const [port, own] = await freePorts(2);
    const there = await DnstapCollector.listen({ port });
    t.after(() => there.close());
    const server = await serveProcess(
      `  dnstap tcp://127.0.0.1:${port}\n  dnstap listen tcp://127.0.0.1:${own} full\n  whoami`,
    );
    t.after(() => server.stop());
    ask(server, 'a.example.');
    await until(() => there.messages.length === 2, 'both messages');
    assert.ok(there.messages.every(({ queryMessage }) => queryMessage === null));
  });
});

const programs = missing('dig', 'fstrm_capture', 'dnstap-ldns');

describe('dnstap beside fstrm_capture and dnstap-ldns', { skip: programs ?? false }, () => {
  test('dnstap-ldns reads the output of fstrm_capture', async (t) => {
    const path = join(directory, 'capture.sock');
    const file = join(directory, 'capture.tap');
    const capture = start('fstrm_capture', [
      ...['fstrm_capture', '-t', 'protobuf:dnstap.Dnstap', '-u', path, '-w', file],
    ]);
    t.after(() => capture.signal('SIGKILL'));
    await until(() => existsSync(path), 'fstrm_capture');
    const server = await serveProcess(`  dnstap ${path} full\n  whoami`);
    t.after(() => server.stop());
    ask(server, 'captured.example.', 'TXT');
    // When it exits cleanly, it sends the collector a STOP frame.
    server.child.signal('SIGTERM');
    assert.equal(await server.child.exitCode, 0, server.child.output());
    capture.signal('SIGTERM');
    await capture.exitCode;
    const text = execFileSync('dnstap-ldns', ['-r', file], { encoding: 'utf8' });
    assert.match(text, /CQ 127\.0\.0\.1 UDP \d+b "captured\.example\." IN TXT/);
    assert.match(text, /CR 127\.0\.0\.1 UDP \d+b "captured\.example\." IN TXT/);
  });
});
