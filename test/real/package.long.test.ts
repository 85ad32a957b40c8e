import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { answered, start } from '../kit/child.ts';
import { pack, run } from '../kit/package.ts';
import { freePorts } from '../kit/free-ports.ts';

/** The result of `npm pack`, installed as a user would install it. */

const directory = mkdtempSync(join(tmpdir(), 'ndots-package-'));
after(() => rmSync(directory, { recursive: true, force: true }));

/** A PATH that starts with this program's pinned runtime, and one without it. */
const pinned = dirname(process.execPath);
const others = (process.env['PATH'] ?? '')
  .split(delimiter)
  .filter((place) => place !== '' && !place.includes('node_modules') && place !== pinned);

/** The machine's own Node, if it is not the pinned version. */
const machineNode = others.map((place) => join(place, 'node')).find((file) => existsSync(file));
const machineMajor =
  machineNode === undefined ? null : Number(/\d+/.exec(run([machineNode, '--version']).out)?.[0]);

/** npm's messages when its registry cannot be reached. */
const unreachable = /ENOTFOUND|EAI_AGAIN|ENETUNREACH|ECONNREFUSED|ENOTCACHED/;

describe('the package', () => {
  const unpacked = join(directory, 'unpacked');
  let tarball = '';

  before(() => {
    ({ tarball } = pack(directory));
  });

  test('installed for all users, it serves on this runtime, and its manual is where man looks', async (t) => {
    const prefix = join(unpacked, 'pinned');
    const env = { ...process.env, PATH: [pinned, ...others].join(delimiter) };
    const { code, err } = run(['npm', 'install', '-g', '--prefix', prefix, tarball], env);
    if (unreachable.test(err)) return t.skip('the registry of npm cannot be reached');
    assert.equal(code, 0, err);
    const ndots = join(prefix, 'bin/ndots');
    assert.match(run([ndots, '--version'], env).out, /^ndots-\d.*\n.*nodev2\d/);
    assert.ok(existsSync(join(prefix, 'bin/kubectl-ndots')));
    const manual = join(prefix, 'share/man/man1');
    assert.match(readFileSync(join(manual, 'ndots.1'), 'utf8'), /^\.TH NDOTS 1/);
    assert.deepEqual(readdirSync(manual).toSorted(), readdirSync('man').toSorted());
    const [port] = await freePorts(1);
    const words = [ndots, 'serve', '--example', '-dns.port', String(port)];
    const child = start('ndots', words, { env });
    t.after(() => child.stop());
    await answered(port, 'backend.critical-app.svc.cluster.local');
  });

  test('installed with an older Node, each verb names the required version in one line', (t) => {
    if (machineNode === undefined || machineMajor === null || machineMajor >= 24)
      return t.skip('this machine has no Node older than 24');
    const prefix = join(unpacked, 'machine');
    const env = { ...process.env, PATH: [dirname(machineNode), ...others].join(delimiter) };
    const { code, err } = run(['npm', 'install', '-g', '--prefix', prefix, tarball], env);
    if (unreachable.test(err)) return t.skip('the registry of npm cannot be reached');
    assert.equal(code, 0, err);
    for (const words of [['--version'], ['serve', '--example'], ['trace', 'a']]) {
      const ran = run([join(prefix, 'bin/ndots'), ...words], env);
      assert.equal(ran.code, 2);
      assert.equal(ran.out, '');
      assert.match(ran.err, /^ndots needs Node 24 or later, but \S+ is v\d+\.\d+\.\d+; .*\n$/);
    }
  });
});
