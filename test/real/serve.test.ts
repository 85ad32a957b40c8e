import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test, type TestContext } from 'node:test';
import { answered, printed, question, start, type Child } from '../kit/child.ts';
import { freePorts } from '../kit/free-ports.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-serve-'));
after(() => rmSync(directory, { recursive: true, force: true }));

const program = 'bin/ndots';
let count = 0;

function corefile(text: string): string {
  const file = join(directory, `Corefile-${count++}`);
  writeFileSync(file, text);
  return file;
}

/** Runs a server for the duration of a test. */
async function serve(
  t: TestContext,
  text: string,
  ...words: string[]
): Promise<{ child: Child; file: string }> {
  const file = corefile(text);
  const child = start('ndots', [program, 'serve', '-conf', file, ...words]);
  t.after(() => child.stop());
  await printed(child, /ndots-\d/, 15_000);
  return { child, file };
}

/** Runs a server that must exit without being stopped. */
function refused(file: string, ...words: string[]): { code: number | null; text: string } {
  const { status, stdout, stderr } = spawnSync(program, ['serve', '-conf', file, ...words], {
    encoding: 'utf8',
    timeout: 15_000,
  });
  return { code: status, text: stdout + stderr };
}

function dig(port: number, ...words: string[]): string {
  return spawnSync('dig', ['@127.0.0.1', '-p', String(port), '+time=2', '+tries=1', ...words], {
    encoding: 'utf8',
  }).stdout;
}

const hasDig = spawnSync('dig', ['-v']).status === 0;

describe('ndots serve, as a process', () => {
  test(
    'dig is answered over UDP and TCP, by IPv4',
    { skip: !hasDig && 'dig is not installed' },
    async (t) => {
      const [port] = await freePorts(1);
      await serve(t, `.:${port} {\n  bind 127.0.0.1\n  hosts {\n    10.1.2.3 a.test\n  }\n}\n`);
      assert.equal(dig(port, 'a.test', '+short').trim(), '10.1.2.3');
      assert.equal(dig(port, 'a.test', '+short', '+tcp').trim(), '10.1.2.3');
      assert.match(dig(port, 'A.tEsT'), /^A\.tEsT\.\s+\d+\s+IN\s+A\s+10\.1\.2\.3$/m);
    },
  );

  test('0.0.0.0 is all addresses of both families, for DNS as for HTTP', async (t) => {
    const [port, health, ready, metrics] = await freePorts(4);
    await serve(
      t,
      `.:${port} {\n  bind 0.0.0.0\n  health 0.0.0.0:${health}\n  ready 0.0.0.0:${ready}\n  prometheus 0.0.0.0:${metrics}\n  whoami\n}\n`,
    );
    for (const host of ['127.0.0.1', '[::1]']) {
      assert.equal(await (await fetch(`http://${host}:${health}/health`)).text(), 'OK');
      assert.equal(await (await fetch(`http://${host}:${ready}/ready`)).text(), 'OK');
      assert.equal((await fetch(`http://${host}:${metrics}/metrics`)).status, 200);
    }
    const socket = createSocket('udp6');
    t.after(() => socket.close());
    const reply = new Promise((resolve) => socket.once('message', resolve));
    socket.send(question('x.test', 1), port, '::1');
    await reply;
    await answered(port, 'x.test', 5000, () => true);
  });

  test('health, readiness and metrics answer over HTTP', async (t) => {
    const [port, health, ready, metrics] = await freePorts(4);
    await serve(
      t,
      `.:${port} {\n  bind 127.0.0.1\n  health 127.0.0.1:${health}\n  ready 127.0.0.1:${ready}\n  prometheus 127.0.0.1:${metrics}\n  whoami\n}\n`,
    );
    await answered(port, 'x.test', 5000, () => true);
    assert.equal(await (await fetch(`http://127.0.0.1:${health}/health`)).text(), 'OK');
    assert.equal(await (await fetch(`http://127.0.0.1:${ready}/ready`)).text(), 'OK');
    const text = await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text();
    assert.match(text, /coredns_dns_requests_total\{[^}]*type="A"[^}]*\} [1-9]/);
    assert.match(text, /coredns_build_info\{.*ndots-/);
  });

  test('SIGTERM ends it with code 0, and the pid file is removed', async (t) => {
    const [port] = await freePorts(1);
    const pidfile = join(directory, 'pid');
    const { child } = await serve(
      t,
      `.:${port} {\n  bind 127.0.0.1\n  whoami\n}\n`,
      '-pidfile',
      pidfile,
    );
    assert.equal(Number(readFileSync(pidfile, 'utf8')), child.pid);
    child.signal('SIGTERM');
    assert.equal(await child.exitCode, 0);
    assert.equal(existsSync(pidfile), false);
  });

  test('SIGTERM while it starts ends it with code 0', async (t) => {
    const [port] = await freePorts(1);
    const file = corefile(
      // The API server's port is closed, so the server waits for objects when it starts.
      `.:${port} {\n  bind 127.0.0.1\n  kubernetes cluster.local {\n    endpoint http://127.0.0.1:9\n  }\n}\n`,
    );
    const child = start('ndots', [program, 'serve', '-conf', file]);
    t.after(() => child.stop());
    await printed(child, /plugin\/kubernetes/, 15_000);
    child.signal('SIGTERM');
    assert.equal(await child.exitCode, 0);
    assert.match(child.output(), /SIGTERM: Shutting down/);
  });

  test('a pid file that cannot be written is an error line, and the server serves', async (t) => {
    const [port] = await freePorts(1);
    const corefile = `.:${port} {\n  bind 127.0.0.1\n  whoami\n}\n`;
    const { child } = await serve(t, corefile, '-pidfile', join(directory, 'absent', 'pid'));
    assert.match(child.output(), /\[ERROR\] Could not write pid file: no such file or directory/);
    await answered(port, 'x.test', 5000, () => true);
    child.signal('SIGTERM');
    assert.equal(await child.exitCode, 0);
  });

  test(
    'SIGUSR1 reloads the Corefile; a broken one leaves the old one serving; the debugger stays closed',
    { skip: !hasDig && 'dig is not installed' },
    async (t) => {
      const [port] = await freePorts(1);
      const text = (address: string): string =>
        `.:${port} {\n  bind 127.0.0.1\n  hosts {\n    ${address} a.test\n  }\n}\n`;
      const { child, file } = await serve(t, text('10.0.0.1'));
      writeFileSync(file, text('10.0.0.2'));
      child.signal('SIGUSR1');
      await printed(child, /Reloading complete/);
      assert.equal(dig(port, 'a.test', '+short').trim(), '10.0.0.2');
      writeFileSync(file, text('10.0.0.3').replace('hosts', 'hots'));
      child.signal('SIGUSR1');
      await printed(child, /Unknown directive 'hots'/);
      assert.equal(dig(port, 'a.test', '+short').trim(), '10.0.0.2');
      assert.doesNotMatch(child.output(), /Debugger listening/);
    },
  );

  test('a reload loses no query and moves to a new port without closing the old one first', async (t) => {
    const [port, other] = await freePorts(2);
    const { child, file } = await serve(t, `.:${port} {\n  bind 127.0.0.1\n  whoami\n}\n`);
    const socket = createSocket('udp4');
    t.after(() => socket.close());
    let replies = 0;
    socket.on('message', () => replies++);
    let sent = 0;
    const query = Buffer.from('000901000001000000000000017804746573740000010001', 'hex');
    for (let turn = 0; turn < 40; turn++) {
      for (let i = 0; i < 20; i++) {
        socket.send(query, port, '127.0.0.1');
        sent++;
      }
      if (turn === 5) {
        writeFileSync(file, `.:${port} .:${other} {\n  bind 127.0.0.1\n  whoami\n  errors\n}\n`);
        child.signal('SIGUSR1');
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    await answered(other, 'x.test', 5000, () => true);
    await new Promise((resolve) => setTimeout(resolve, 300));
    assert.equal(replies, sent);
  });

  test('without a Corefile it is whoami and log', async (t) => {
    const [port] = await freePorts(1);
    const child = start('ndots', [
      'sh',
      '-c',
      `cd ${directory} && exec ${process.cwd()}/${program} serve -p ${port}`,
    ]);
    t.after(() => child.stop());
    await printed(child, /ndots-\d/, 15_000);
    await answered(port, 'x.test', 5000, (reply) => reply.readUInt16BE(10) >= 2);
    await printed(child, /\[INFO\] 127\.0\.0\.1:\d+ - 1 "A IN x\.test\. udp/);
  });
});

describe('ndots serve with invalid input', () => {
  const cases: readonly (readonly [string, string, RegExp])[] = [
    [
      'an unknown directive',
      '. {\n  whoam\n}\n',
      /:2 - Error during parsing: Unknown directive 'whoam'[^]*whoami/,
    ],
    [
      'a wrong property',
      '. {\n  health {\n    lamduck 5s\n  }\n}\n',
      /plugin\/health: .*unknown property 'lamduck'[^]*lameduck/,
    ],
    [
      'a zone twice',
      'a. {\n  whoami\n}\na. {\n  whoami\n}\n',
      /cannot serve dns:\/\/a\.:10053 - it is already defined/,
    ],
    ['a missing import', 'import gone.conf\n', /gone\.conf/],
    [
      'a manifest directory that is not there',
      'a. {\n  kubernetes a. {\n    manifests /does/not/exist\n  }\n}\n',
      /\/does\/not\/exist/,
    ],
    ['an empty list of upstreams', '. {\n  forward .\n}\n', /plugin\/forward/],
    [
      'an unfinished block',
      '. {\n  whoami\n',
      /Unexpected token 'whoami', expecting '}'[^]*never closed/,
    ],
  ];
  for (const [what, text, expected] of cases) {
    test(`${what} is refused with its place and code 1`, () => {
      const file = corefile(text);
      const { code, text: printedText } = refused(file, '-p', '10053');
      assert.match(printedText, expected);
      assert.equal(code, 1);
      assert.doesNotMatch(printedText, /\n\s+at .*\.ts:/, 'no stack trace');
    });
  }

  test('a Corefile that is not there is refused with a next step', () => {
    const { code, text } = refused(join(directory, 'nowhere'));
    assert.equal(code, 1);
    assert.match(text, /open .*nowhere/);
    assert.match(text, /ls -l/);
  });

  test('a port that another process holds is named, with its holder', async (t) => {
    const [port] = await freePorts(1);
    const holder = createSocket('udp4');
    await new Promise<void>((resolve) => holder.bind(port, '127.0.0.1', resolve));
    t.after(() => holder.close());
    const { code, text } = refused(corefile(`.:${port} {\n  bind 127.0.0.1\n  whoami\n}\n`));
    assert.equal(code, 1);
    assert.match(text, new RegExp(`${port}`));
    assert.match(text, /in use|holds/i);
  });

  test('a port that another ndots serves is not shared silently', async (t) => {
    const [port] = await freePorts(1);
    const text = `.:${port} {\n  bind 127.0.0.1\n  whoami\n}\n`;
    await serve(t, text);
    const { code, text: printedText } = refused(corefile(text));
    assert.equal(code, 1);
    assert.match(printedText, /in use/);
  });

  test('surplus words and unknown flags are refused', () => {
    assert.match(
      refused(corefile('. {\n}\n'), 'surplus').text,
      /extra command line arguments: \[surplus\]/,
    );
    const { code, text } = refused(corefile('. {\n}\n'), '-dns.prot', '53');
    assert.equal(code, 3);
    assert.match(text, /flag provided but not defined: -dns\.prot \(did you mean -dns\.port\?\)/);
  });
});
