/** The changes that the node cache makes to a machine's network, and their limits. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  LOCAL,
  makeNodeWorld,
  noNodeWorld,
  SERVICE,
  unanswered,
  until,
  wait,
  WHO,
  type NodeWorld,
} from '../kit/node-world.ts';

const reason = noNodeWorld();

describe('the network of a node cache', { skip: reason ?? false }, () => {
  let world: NodeWorld;
  before(async () => {
    world = await makeNodeWorld();
  });
  after(() => world.close());

  const refused = async (words: readonly string[], pattern: RegExp): Promise<void> => {
    const cache = await world.cache(words, false);
    const limit = setTimeout(() => cache.signal('SIGKILL'), 20_000);
    assert.equal(await cache.exitCode, 1, cache.output());
    clearTimeout(limit);
    assert.match(cache.output(), pattern);
  };

  test('an existing interface of that name that belongs to another program is left alone', async () => {
    world.node('ip', 'link', 'add', 'mine', 'type', 'veth');
    const before = world.node('ip', 'link', 'show', 'mine');
    await refused(['-interfacename', 'mine'], /the interface mine already exists.*of type veth/);
    assert.equal(world.node('ip', 'link', 'show', 'mine'), before);
    world.node('ip', 'link', 'delete', 'mine');
  });

  test('pods keep querying the cluster until the cache can reach it', async () => {
    const rule = ['KUBE-SERVICES', '-d', '10.96.0.11', '-j', 'DROP'];
    world.node('iptables', '-t', 'mangle', '-N', 'KUBE-SERVICES');
    world.node('iptables', '-t', 'mangle', '-A', 'OUTPUT', '-j', 'KUBE-SERVICES');
    world.node('iptables', '-t', 'mangle', '-A', ...rule);
    const stop = await world.ask(SERVICE);
    const cache = await world.cache([], false);
    await until(() => /waiting for an answer for cluster\.local\./.test(cache.output()));
    assert.equal(world.who(SERVICE), WHO.cluster);
    world.node('iptables', '-t', 'mangle', '-D', ...rule);
    await until(() => world.who(SERVICE) === WHO.node);
    assert.deepEqual(unanswered(await stop()), []);
    cache.signal('SIGTERM');
    assert.equal(await cache.exitCode, 0);
    world.node('iptables', '-t', 'mangle', '-F');
  });

  test('SIGTERM removes exactly what was set up, and no query is lost', async () => {
    const comment = ['-m', 'comment', '--comment', 'NodeLocal DNS Cache: skip conntrack'];
    world.node('iptables', '-t', 'raw', '-A', 'OUTPUT', '-d', '10.9.9.9', ...comment);
    world.node('ip', 'link', 'add', 'nodelocaldns', 'type', 'bridge');
    world.node('ip', 'link', 'set', 'nodelocaldns', 'alias', 'ndots node-cache', 'up');
    world.node('ip', 'address', 'add', '10.9.9.9/32', 'dev', 'nodelocaldns');
    const before = [
      world.node('iptables-save', '-t', 'raw'),
      world.node('ip', '-br', '-4', 'address'),
    ];
    const cache = await world.cache();
    assert.match(cache.output(), /nodelocaldns also has 10\.9\.9\.9/);
    const stop = await world.ask(SERVICE);
    await wait(300);
    cache.signal('SIGTERM');
    assert.equal(await cache.exitCode, 0);
    assert.deepEqual(unanswered(await stop()), []);
    const plain = (text: string): string =>
      text.replace(/^#.*\n|\[\d+:\d+\]| UP| DOWN| UNKNOWN/gm, '').replace(/ +/g, ' ');
    const after = [
      world.node('iptables-save', '-t', 'raw'),
      world.node('ip', '-br', '-4', 'address'),
    ];
    assert.deepEqual(after.map(plain), before.map(plain));
    world.node('ip', 'link', 'delete', 'nodelocaldns');
  });

  test('TCP connections that pods opened before SIGTERM are answered after the rules are gone', async () => {
    // Sends a query every 5 ms, each on a connection that was opened beforehand.
    const program = `
      const { connect } = require('node:net');
      const query = Buffer.from('001a000101000001000000000000' + '0377686f04746573740000010001', 'hex');
      const open = () => new Promise((resolve) => {
        const socket = connect(53, ${JSON.stringify(LOCAL)}, () => resolve(socket));
        socket.on('error', () => resolve(socket));
      });
      Promise.all(Array.from({ length: 400 }, open)).then((sockets) => {
        console.log('connected');
        for (const socket of sockets) {
          let sentAt = 0;
          socket.on('data', () => console.log('answered ' + sentAt));
          setTimeout(() => { sentAt = Date.now(); socket.write(query); }, 5 * sockets.indexOf(socket));
        }
        setTimeout(() => process.exit(0), 4000);
      });
    `;
    // If the machine stalls during the 250 ms of the shutdown, no effect is visible, so retry.
    for (let tries = 0; ; tries++) {
      const cache = await world.cache();
      const client = world.start('client', 'pod', [process.execPath, '-e', program]);
      await until(() => client.output().includes('connected'));
      cache.signal('SIGTERM');
      await until(
        () => !/-A PREROUTING .*skip conntrack/.test(world.node('iptables-save', '-t', 'raw')),
      );
      const gone = Date.now();
      assert.equal(await cache.exitCode, 0);
      assert.equal(await client.exitCode, 0);
      const answered = [...client.output().matchAll(/answered (\d+)/g)].map(([, at]) => Number(at));
      if (answered.some((at) => at > gone)) return;
      assert.ok(tries < 5, `of ${answered.length} answers none to a query of after ${gone}`);
    }
  });

  test('IPv6 addresses are treated as those of IPv4', async () => {
    const six = 'fd00:10:96::a';
    const cache = await world.cache(['-localip', `${LOCAL},${six}`]);
    await until(() =>
      world.node('dig', '+short', '+time=1', `@${six}`, 'who.test').startsWith('10.'),
    );
    assert.match(world.node('ip', '-br', 'address', 'show', 'nodelocaldns'), /fd00:10:96::a\/128/);
    const rules = world.node('ip6tables-save', '-t', 'raw');
    assert.match(rules, /-A PREROUTING -d fd00:10:96::a\/128 -p udp .*skip conntrack" -j NOTRACK/);
    cache.signal('SIGTERM');
    assert.equal(await cache.exitCode, 0);
    assert.doesNotMatch(world.node('ip6tables-save', '-t', 'raw'), /fd00/);
    assert.doesNotMatch(world.node('ip', '-br', 'link'), /nodelocaldns/);
  });

  test('without IPv6 an IPv6 address is refused, and nothing is left behind', async () => {
    const off = 'net.ipv6.conf.default.disable_ipv6';
    world.node('sysctl', '-w', `${off}=1`);
    await refused(
      ['-localip', `${LOCAL},fd00:10:96::a`],
      /fd00:10:96::a cannot be put on nodelocaldns/,
    );
    assert.doesNotMatch(world.node('ip', '-br', 'link'), /nodelocaldns/);
    world.node('sysctl', '-w', `${off}=0`);
  });

  test('a Corefile that cannot be served leaves nothing behind', async () => {
    writeFileSync(join(world.directory, 'broken'), '.:53 {\n nosuch\n}\n');
    await refused(['-basecorefile', join(world.directory, 'broken')], /nosuch/);
    assert.doesNotMatch(world.node('ip', '-br', 'link'), /nodelocaldns/);
    assert.doesNotMatch(world.node('iptables-save', '-t', 'raw'), /--dport 53/);
  });

  test('without the right to change the network it reports that', () => {
    const main = join(import.meta.dirname, '../../src/faces/cli/main.ts');
    const words = ['-localip', LOCAL, '-conf', join(world.directory, 'Corefile')];
    const metrics = ['-metrics-listen-address', '127.0.0.1:0'];
    const drop = ['setpriv', '--bounding-set', '-net_admin', '--inh-caps', '-net_admin', '--'];
    const run = spawnSync(
      drop[0]!,
      [...drop.slice(1), process.execPath, main, 'node-cache', ...words, ...metrics],
      {
        encoding: 'utf8',
      },
    );
    assert.equal(run.status, 1, run.stdout + run.stderr);
    assert.match(run.stderr, /no permission to change this machine’s network: .*\n.*NET_ADMIN/);
    assert.match(run.stderr, /-setupinterface=false -setupiptables=false/);
  });
});
