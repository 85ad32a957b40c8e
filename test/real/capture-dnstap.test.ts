import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { answered, start, type Child } from '../kit/child.ts';
import { missing } from '../kit/dig.ts';
import { until } from '../kit/dnstap-collector.ts';
import { freePorts } from '../kit/free-ports.ts';
import { serveProcess } from '../kit/serve-process.ts';

/**
 * `ndots capture --dnstap` receives messages from programs that send dnstap. It shows each exchange once, with its
 * answer.
 */

const directory = mkdtempSync(join(tmpdir(), 'capture-dnstap-'));
after(() => rmSync(directory, { recursive: true, force: true }));
const program = join(import.meta.dirname, '../../bin/ndots');
const skip = missing('dig', 'unbound', 'named') ?? false;

/** The output and exit code of a capture that sees four questions sent to a server. */
async function shown(
  at: string,
  server: () => Promise<{ port: number; stop(): Promise<void> }>,
): Promise<string[]> {
  const capture = start('capture', [
    program,
    'capture',
    '--dnstap',
    at,
    '-o',
    'json',
    '-c',
    '4',
    '--for',
    '60s',
  ]);
  try {
    await until(() => capture.output().includes('Ctrl-C ends'), 'the capture');
    const { port, stop } = await server();
    for (const name of ['a', 'b', 'c', 'd'])
      execFileSync('dig', ['+tries=1', '@127.0.0.1', '-p', String(port), `${name}.kiosk.example`]);
    const code = await capture.exitCode;
    await stop();
    assert.equal(code, 0, capture.output());
  } finally {
    await capture.stop();
  }
  const rows = capture
    .output()
    .split('\n')
    .filter((line) => line.startsWith('{'));
  return rows.map((row) => {
    const { question, verdict } = JSON.parse(row) as {
      question: { name: string };
      verdict: string;
    };
    return `${question.name} ${verdict}`;
  });
}

const all = ['a', 'b', 'c', 'd'].map((name) => `${name}.kiosk.example. answered`);

/** Another vendor's server, which is queried for a name in a different zone until it answers. */
async function foreign(
  port: number,
  child: Child,
): Promise<{ port: number; stop(): Promise<void> }> {
  await answered(port, 'ready.example', 20_000, () => true);
  return { port, stop: () => child.stop() };
}

const serve = (path: string) => () =>
  serveProcess(
    `  dnstap ${path} full\n  template IN A kiosk.example {\n    answer "{{ .Name }} 5 IN A 192.0.2.9"\n  }`,
  );

test('from ndots over a Unix socket', { skip }, async () => {
  const path = join(directory, 'ndots.sock');
  assert.deepEqual((await shown(`unix:${path}`, serve(path))).toSorted(), all);
  assert.equal(existsSync(path), false);
});

test('from ndots over TCP', { skip }, async () => {
  const [port] = await freePorts(1);
  assert.deepEqual(
    (await shown(`tcp:127.0.0.1:${port}`, serve(`tcp://127.0.0.1:${port}`))).toSorted(),
    all,
  );
});

test('from Unbound', { skip }, async () => {
  const [port] = await freePorts(1);
  const path = join(directory, 'unbound.sock');
  const file = join(directory, 'unbound.conf');
  writeFileSync(
    file,
    `server:
  interface: 127.0.0.1@${port}
  do-daemonize: no
  chroot: ""
  username: ""
  pidfile: ""
  use-syslog: no
  module-config: "iterator"
  local-zone: "ready.example." refuse
  local-zone: "kiosk.example." redirect
  local-data: "kiosk.example. A 192.0.2.7"
remote-control:
  control-enable: no
dnstap:
  dnstap-enable: yes
  dnstap-socket-path: "${path}"
  dnstap-log-client-query-messages: yes
  dnstap-log-client-response-messages: yes
`,
  );
  const rows = await shown(`unix:${path}`, () =>
    foreign(port, start('unbound', ['unbound', '-d', '-c', file])),
  );
  assert.ok(rows.length === 4 && rows.every((row) => row.endsWith(' answered')), rows.join(', '));
});

test('from BIND', { skip }, async () => {
  const [port] = await freePorts(1);
  const path = join(directory, 'bind.sock');
  const [file, zone] = [join(directory, 'named.conf'), join(directory, 'zone')];
  writeFileSync(
    zone,
    '$TTL 60\n@ SOA ns host 1 2 3 4 5\n@ NS ns\nns A 127.0.0.1\n* A 192.0.2.33\n',
  );
  writeFileSync(
    file,
    `options { directory "${directory}"; listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; }; recursion no;
  dnssec-validation no; pid-file none; session-keyfile none; dnstap { auth; client; }; dnstap-output unix "${path}"; };
controls { };
zone "kiosk.example" { type primary; file "${zone}"; };
`,
  );
  const rows = await shown(`unix:${path}`, () =>
    foreign(port, start('named', ['named', '-g', '-n', '1', '-c', file])),
  );
  assert.ok(rows.length === 4 && rows.every((row) => row.endsWith(' answered')), rows.join(', '));
});
