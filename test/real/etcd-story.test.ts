import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { before, after, describe, test } from 'node:test';
import { printed, start, type Child } from '../kit/child.ts';
import { etcdPrograms, startEtcd, type EtcdProcess } from '../kit/etcd.ts';
import { freePorts } from '../kit/free-ports.ts';

/** Follows the pages about SkyDNS line by line: `examples/skydns/README.md` and `docs/etcd.md`. */

const ndots = resolve('bin/ndots');
const programs = etcdPrograms();
const skip = programs.length === 0 ? 'etcd is not installed (etcd-server, or ETCD=FILE)' : false;

describe('SkyDNS, as described on its pages', { skip }, () => {
  let etcd: EtcdProcess;
  let child: Child;
  let port: number;
  const directory = mkdtempSync(join(tmpdir(), 'ndots-skydns-'));

  const run = (line: string): { readonly code: number | null; readonly text: string } => {
    const words = line
      .replaceAll('127.0.0.1:2379', `127.0.0.1:${etcd.port}`)
      .replaceAll('-p 1053', `-p ${port}`)
      .replace(/^ndots /, `${ndots} `);
    const env = { ...process.env, ETCDCTL_ENDPOINTS: etcd.endpoint };
    const { status, stdout, stderr } = spawnSync('sh', ['-c', words], { encoding: 'utf8', env });
    return { code: status, text: stdout + stderr };
  };

  before(async () => {
    etcd = await startEtcd(programs[0]!.path);
    [port] = await freePorts(1);
    const corefile = readFileSync('examples/skydns/Corefile', 'utf8')
      .replaceAll('2379', String(etcd.port))
      .replaceAll('1053', String(port));
    writeFileSync(join(directory, 'Corefile'), corefile);
    child = start('ndots', [ndots, 'serve', '-conf', join(directory, 'Corefile')]);
    await printed(child, /ndots-\d/, 20_000);
  });

  after(async () => {
    await child?.stop();
    await etcd?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  test('the example shows the output of its lines', async () => {
    const page = readFileSync('examples/skydns/README.md', 'utf8');
    const blocks = [...page.matchAll(/^```(sh)?\n([^]*?)^```$/gm)].slice(1);
    for (let i = 0; i + 1 < blocks.length; i += 2) {
      let printedText = '';
      for (const line of blocks[i]![2]!.trim().split('\n')) {
        const { code, text } = run(line);
        assert.equal(code, 0, `${line}: ${text}`);
        printedText += text;
      }
      assert.equal(printedText, blocks[i + 1]![2]);
    }
  });

  test('at the end, etcd is stopped and answers stay', async (t) => {
    await etcd.kill();
    t.after(() => etcd.restart());
    const asked = run(
      'ndots query @127.0.0.1 -p 1053 backend.critical-app.svc.cluster.local +short',
    );
    assert.deepEqual(asked, { code: 0, text: '10.3.0.116\n' });
  });

  test('the commands in docs/etcd.md work', () => {
    const page = readFileSync('docs/etcd.md', 'utf8');
    const lines = /^```sh\n([^]*?)^```$/m.exec(page)![1]!.trim().split('\n');
    for (const line of lines) {
      const { code, text } = run(line);
      assert.equal(code, 0, `${line}: ${text}`);
    }
    assert.equal(run('ndots etcd get a1.web.shop.cluster.local').code, 1);
  });

  test('a record with a lease expires, one that is kept alive when its program ends', async () => {
    const shown = (): number | null => run('ndots etcd get a.lease.cluster.local').code;
    const renewing = start('renewing', [
      ...[ndots, 'etcd', 'put', 'a.lease.cluster.local', '10.3.0.9', '--keep-alive'],
      ...['--endpoints', etcd.endpoint, '--lease', '2'],
    ]);
    await printed(renewing, /lease of/, 20_000);
    await new Promise((resolve_) => setTimeout(resolve_, 4000));
    assert.equal(shown(), 0);
    renewing.signal('SIGTERM');
    assert.equal(await renewing.exitCode, 130);
    assert.equal(shown(), 1);
  });

  test('errors are distinguished: usage, no such record, no etcd', () => {
    for (const [line, code, text] of [
      ['ndots etcd', 3, /which action/],
      ['ndots etcd put a.cluster.local', 3, /needs a host/],
      ['ndots etcd put a.cluster.local a..b', 3, /neither an address nor a domain name/],
      ['ndots etcd put a.cluster.local 10.0.0.300', 3, /neither an address nor a host name/],
      ["ndots etcd put a.cluster.local 'web shop'", 3, /neither an address nor a host name/],
      ['ndots etcd pt a.cluster.local 10.0.0.1', 3, /Did you mean put\?/],
      ['ndots etcd get a..b', 3, /empty label/],
      ['ndots etcd set a.cluster.local 10.0.0.1', 3, /Did you mean get|Known: put, get, list, rm/],
      ['ndots etcd get nobody.cluster.local', 1, /no record nobody\.cluster\.local$/m],
      ['ndots etcd rm nobody.cluster.local', 1, /no record nobody\.cluster\.local$/m],
      ['ndots etcd get cluster.local', 1, /no record cluster\.local itself; ndots etcd list shows/],
      ['ndots etcd rm cluster.local', 1, /no record cluster\.local itself; --below removes/],
      ['ndots etcd list nobody.local', 1, /no record at or under nobody\.local/],
      ['ndots etcd put one.cluster.local 10.0.0.1', 0, /one/],
      // A key that exists does not conceal a missing one.
      ['ndots etcd get one.cluster.local two.cluster.local', 1, /no record two\.cluster\.local$/m],
      ['ndots etcd get one.cluster.local two.cluster.local', 1, /^one\.cluster\.local\. /m],
      ['ndots etcd list one.cluster.local two.local', 1, /no record at or under two\.local/],
      ['ndots etcd rm two.cluster.local one.cluster.local', 1, /no record two\.cluster\.local$/m],
      ['ndots etcd get a.cluster.local --endpoints http://127.0.0.1:1', 2, /connection refused/],
    ] as const) {
      const result = run(line);
      assert.equal(result.code, code, `${line}: ${result.text}`);
      assert.match(result.text, text);
    }
  });
});
