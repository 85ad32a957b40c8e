import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { createServer as createTls } from 'node:tls';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { freePorts } from '../../../../test/kit/free-ports.ts';
import { runCommand } from '../../../../test/kit/trace-command.ts';
import { Authority } from '../../../../test/kit/authority.ts';
import { lint } from './lint.ts';

/** Tests rules that query the network, on real sockets. Without `--live`, nothing may be sent. */

const directory = mkdtempSync(join(tmpdir(), 'ndots-lint-live-'));

interface Upstream {
  readonly port: number;
  asked: number;
}

const closers: (() => void)[] = [];
after(() => {
  for (const close of closers) close();
  rmSync(directory, { recursive: true, force: true });
});

/** A server that answers every query with NXDOMAIN, optionally over TCP as well. */
async function upstream(tcp: boolean): Promise<Upstream> {
  const udp = createSocket('udp4');
  const [port] = await freePorts(1);
  udp.bind(port, '127.0.0.1');
  closers.push(() => udp.close());
  await once(udp, 'listening');
  const made: Upstream = { port, asked: 0 };
  const reply = (query: Buffer): Buffer => {
    made.asked++;
    const bytes = Buffer.from(query);
    bytes[2]! |= 0x80;
    bytes[3] = 3;
    return bytes;
  };
  udp.on('message', (query, from) => udp.send(reply(query), from.port, from.address));
  if (!tcp) return made;
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (data: Buffer) => {
      socket.write(Buffer.concat([data.subarray(0, 2), reply(data.subarray(2))]));
    });
  });
  server.listen(port, '127.0.0.1');
  closers.push(() => server.close());
  await once(server, 'listening');
  return made;
}

function corefile(forward: string): string {
  const file = join(directory, 'Corefile');
  writeFileSync(
    file,
    `.:53 {\n    errors\n    health {\n        lameduck 5s\n    }\n    ready\n    prometheus\n    forward . ${forward}\n    cache 30\n    loop\n    reload\n}\n`,
  );
  return file;
}

const run = (file: string, ...words: string[]): ReturnType<typeof runCommand> =>
  runCommand(lint, [file, '-o', 'json', ...words]);

async function codes(forward: string, ...words: string[]): Promise<readonly string[]> {
  const { out } = await run(corefile(forward), '--live', '--timeout', '300ms', ...words);
  const { findings } = JSON.parse(out) as { findings: { code: string }[] };
  return findings.map(({ code }) => code).filter((code) => code >= 'CF53');
}

const body = ' {\n        max_concurrent 1000\n    }';

describe('ndots lint --live', () => {
  let fine: Upstream;
  let poor: Upstream;
  before(async () => {
    fine = await upstream(true);
    poor = await upstream(false);
  });

  test('queries upstreams: reports one without TCP and one that is down, but not one that answers', async () => {
    assert.deepEqual(await codes(`127.0.0.1:${fine.port}${body}`), []);
    assert.ok(fine.asked >= 2);
    assert.deepEqual(await codes(`127.0.0.1:${poor.port}${body}`), ['CF54']);
    assert.deepEqual(await codes(`127.0.0.1:9 127.0.0.1:${fine.port}${body}`), ['CF53']);
  });

  test('live findings have their rule in SARIF, like all others', async () => {
    const { out } = await runCommand(lint, [
      ...[corefile(`127.0.0.1:9${body}`), '-o', 'sarif'],
      ...['--live', '--timeout', '300ms', '--only', 'CF53'],
    ]);
    const { runs } = JSON.parse(out) as {
      runs: {
        tool: { driver: { rules: { id: string }[] } };
        results: { ruleId: string; ruleIndex?: number }[];
      }[];
    };
    assert.deepEqual(
      runs[0]!.tool.driver.rules.map(({ id }) => id),
      ['CF53'],
    );
    assert.deepEqual(
      runs[0]!.results.map(({ ruleId, ruleIndex }) => [ruleId, ruleIndex]),
      [['CF53', 0]],
    );
  });

  test('does not query an address that replaces a template variable', async () => {
    const forward = (to: string): string => `__PILLAR__CLUSTER__DNS__ ${to}${body}`;
    assert.deepEqual(await codes(forward(`127.0.0.1:${fine.port}`)), []);
    assert.deepEqual(await codes(forward('127.0.0.1:9')), ['CF53']);
  });

  test('sends nothing without --live', async () => {
    const before = fine.asked;
    const { code } = await runCommand(lint, [
      corefile(`127.0.0.1:${fine.port}${body}`),
      '-o',
      'json',
    ]);
    assert.equal(code, 0);
    assert.equal(fine.asked, before);
  });

  test('--only and --ignore apply to live rules, too', async () => {
    assert.deepEqual(await codes(`127.0.0.1:9${body}`, '--ignore', 'CF53'), []);
    assert.deepEqual(await codes(`127.0.0.1:9${body}`, '--only', 'CF53'), ['CF53']);
    const before = fine.asked;
    await codes(`127.0.0.1:${fine.port}${body}`, '--only', 'CF10');
    assert.equal(fine.asked, before);
  });

  test('verifies certificates with the name and the CA in the Corefile', async () => {
    const authority = Authority.make('test CA');
    const { cert, key } = authority.issue('dns.example', ['dns.example']);
    const server = createTls({ cert, key }, (socket) => socket.on('error', () => undefined));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closers.push(() => server.close());
    const { port } = server.address() as AddressInfo;
    const ca = join(directory, 'ca.pem');
    writeFileSync(ca, authority.cert);
    const forward = (name: string, more = ''): string =>
      `tls://127.0.0.1:${port} {\n        max_concurrent 1000\n        tls_servername ${name}\n${more}    }`;
    const ours = `        tls ${ca}\n`;
    assert.deepEqual(await codes(forward('dns.example', ours)), []);
    assert.deepEqual(await codes(forward('other.example', ours)), ['CF56']);
    // The CA is not trusted on this machine.
    assert.deepEqual(await codes(forward('dns.example')), ['CF56']);
    const { out } = await run(corefile(forward('other.example', ours)), '--live');
    assert.match(out, /it is valid only for other names \(its names: DNS:dns\.example\)/);
  });

  test('--explain and --rules include these rules', async () => {
    assert.match((await runCommand(lint, ['--explain', 'CF58'])).out, /^# CF58: A search domain/);
    assert.match((await runCommand(lint, ['--rules'])).out, /^CF53 {2}error/m);
  });

  test('a comment suppresses such a finding', async () => {
    const file = corefile(`127.0.0.1:9${body}`);
    const text = `# ndots:ignore-file CF53 because it is behind a VPN\n`;
    const { readFileSync } = await import('node:fs');
    writeFileSync(file, text + readFileSync(file, 'utf8'));
    const { out } = await run(file, '--live');
    assert.doesNotMatch(out, /CF53|CF48/);
    // If the rule did not run because of options, its suppression is not reported as unused.
    assert.doesNotMatch((await run(file, '--fail-on', 'never')).out, /CF48/);
    assert.doesNotMatch((await run(file, '--live', '--ignore', 'CF53')).out, /CF48/);
  });
});
