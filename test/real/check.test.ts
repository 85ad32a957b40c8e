/** `ndots check` against servers in separate processes. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { start } from '../kit/child.ts';
import { freePorts } from '../kit/free-ports.ts';
import { serveProcess } from '../kit/serve-process.ts';

const program = resolve('bin/ndots');

async function ndots(...words: readonly string[]): Promise<{ code: number | null; text: string }> {
  const child = start('ndots', [program, ...words]);
  const code = await child.exitCode;
  return { code, text: child.output() };
}

const zone = `  kubernetes cluster.local {
    manifests ${resolve('examples/cluster')}
  }`;

describe('ndots check', () => {
  test('the checks of examples/check.yaml pass on the example cluster', async (t) => {
    const server = await serveProcess(zone);
    const directory = mkdtempSync(join(tmpdir(), 'ndots-check-'));
    t.after(async () => {
      rmSync(directory, { recursive: true });
      await server.stop();
    });
    const yaml = readFileSync('examples/check.yaml', 'utf8');
    const file = join(directory, 'check.yaml');
    // The machine is busy while all tests run.
    writeFileSync(
      file,
      yaml.replaceAll(':1053', `:${server.port}`).replace('timeout: 1s', 'timeout: 8s'),
    );
    const { code, text } = await ndots('check', 'run', '-f', file);
    assert.equal(code, 0, text);
    assert.match(text, /^12 checks, \d+ targets, \d+ ok; 0 of \d+ queries lost$/m, text);
  });

  test('a truncated answer is complete over TCP, from each replica', async (t) => {
    const records = Array.from({ length: 60 }, (_, index) => `    10.0.0.${index + 1} big.example`);
    const server = await serveProcess(`  hosts {\n${records.join('\n')}\n  }`);
    t.after(() => server.stop());
    const yaml = join(mkdtempSync(join(tmpdir(), 'ndots-check-')), 'check.yaml');
    t.after(() => rmSync(yaml, { force: true }));
    writeFileSync(
      yaml,
      `vip: 127.0.0.1:${server.port}\ntimeout: 8s\nchecks:\n  - { check: truncation-roundtrip, name: big.example }\n`,
    );
    const { code, text } = await ndots('check', 'run', '-f', yaml);
    assert.equal(code, 0, text);
    assert.match(text, /truncated at \d+ bytes, complete over TCP with 60 records/);
  });
});

describe('ndots check, names and addresses in both directions', () => {
  const names = '[kubernetes.default.svc.cluster.local, db.shop.svc.cluster.local]';
  for (const [zones, code, said] of [
    ['cluster.local in-addr.arpa ip6.arpa', 0, /and back/],
    ['cluster.local', 1, /has no name: (REFUSED|NXDOMAIN|SERVFAIL)/],
  ] as const)
    test(`kubernetes ${zones}: exit code ${code}`, async (t) => {
      const server = await serveProcess(zone.replace('cluster.local', zones));
      const file = join(mkdtempSync(join(tmpdir(), 'ndots-check-')), 'check.yaml');
      t.after(() => server.stop());
      t.after(() => rmSync(file, { force: true }));
      writeFileSync(
        file,
        `vip: 127.0.0.1:${server.port}\ntimeout: 8s\nchecks: [{check: ptr, names: ${names}}]\n`,
      );
      const run = await ndots('check', 'run', '-f', file);
      assert.equal(run.code, code, run.text);
      assert.match(run.text, said);
    });
});

describe('ndots check serve', () => {
  test('a replica that dies shows in the metrics, and in the log', async (t) => {
    const servers = await Promise.all([serveProcess(zone), serveProcess(zone)]);
    const [first, second] = servers;
    const directory = mkdtempSync(join(tmpdir(), 'ndots-check-'));
    const [port] = await freePorts(1);
    const file = join(directory, 'check.yaml');
    writeFileSync(
      file,
      `vip: 127.0.0.1:${first.port}\nreplicas: ['127.0.0.1:${first.port}', '127.0.0.1:${second.port}']\ntimeout: 3s\nevery: 1s\nchecks: [{ check: replica-answers }]\n`,
    );
    const listen = `127.0.0.1:${port}`;
    const child = start('ndots', [program, 'check', 'serve', '-f', file, '--listen', listen]);
    t.after(async () => {
      await child.stop();
      await Promise.all(servers.map((server) => server.stop()));
      rmSync(directory, { recursive: true });
    });
    const shows = async (pattern: RegExp, page: string): Promise<string> => {
      for (const limit = Date.now() + 30_000; ;) {
        const text = await fetch(`http://${listen}${page}`)
          .then((reply) => reply.text())
          .catch(() => '');
        if (pattern.test(text)) return text;
        assert.ok(Date.now() < limit, `${pattern} in ${page}:\n${text}\n${child.output()}`);
        await new Promise((done) => setTimeout(done, 100));
      }
    };
    const up = (which: { port: number }, value: number): RegExp =>
      new RegExp(
        `^ndots_check_up\\{check="replica-answers",target="127.0.0.1:${which.port}",.*\\} ${value}$`,
        'm',
      );
    await shows(/^OK$/, '/readyz');
    await shows(up(second, 1), '/metrics');
    second.child.signal('SIGKILL');
    const text = await shows(up(second, 0), '/metrics');
    assert.match(text, up(first, 1));
    assert.match(text, /^ndots_check_burn_rate\{alert="fast",/m);
    await shows(/"state": "failed"/, '/json');
    assert.match(child.output(), /\[ERROR\] replica-answers .* is down: .*no server listens/);
    child.signal('SIGTERM');
    assert.equal(await child.exitCode, 0, child.output());
  });
});
