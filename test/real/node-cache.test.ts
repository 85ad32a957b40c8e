/** The node cache in network namespaces, with real iptables, nft, conntrack and dig. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Child } from '../kit/child.ts';
import {
  LOCAL,
  makeNodeWorld,
  noNodeWorld,
  outage,
  SERVICE,
  WHO,
  type Asked,
  type NodeWorld,
} from '../kit/node-world.ts';

const reason = noNodeWorld();
const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits until it holds; gives the milliseconds that it took. */
async function until(holds: () => boolean, limitMs = 20_000): Promise<number> {
  const begin = performance.now();
  while (!holds()) {
    assert.ok(performance.now() - begin < limitMs, 'it never held');
    await wait(30);
  }
  return performance.now() - begin;
}

const unanswered = (asked: readonly Asked[]): readonly Asked[] =>
  asked.filter(([, answeredAt]) => answeredAt === 0);

/** The longest that nobody may answer a pod. */
const WINDOW_MS = 1000;

describe('node-cache', { skip: reason ?? false }, () => {
  let world: NodeWorld;
  let cache: Child;
  const left = (): string =>
    ['raw', 'filter']
      .map((table) => world.node('iptables-save', '-t', table))
      .join('')
      .split('\n')
      .filter((line) => line.includes('NodeLocal'))
      .join('\n') + world.node('sh', '-c', 'ip -br link show nodelocaldns 2>/dev/null || true');

  before(async () => {
    world = await makeNodeWorld();
    cache = await world.cache(['-upstream-endpoints', 'endpoints.test']);
    await until(() => world.who(SERVICE) === WHO.node);
  });
  after(() => world.close());

  test('pods are answered at the link-local address and at that of the service, over UDP and TCP', () => {
    assert.equal(world.who(LOCAL), WHO.node);
    assert.equal(world.who(SERVICE), WHO.node);
    const dig = ['dig', '+short', '+tcp', '+tries=1', '+time=2', `@${SERVICE}`];
    assert.equal(world.pod(...dig, 'who.test').trim(), `10.0.0.${WHO.node}`);
    assert.equal(world.pod(...dig, 'a.cluster.local').trim(), `10.0.0.${WHO.cluster}`);
    assert.equal(
      world.node(...dig.filter((word) => word !== '+tcp'), 'who.test').trim(),
      `10.0.0.${WHO.node}`,
    );
  });

  test('its queries to the cluster go over TCP', () => {
    assert.match(world.node('ss', '-Htn'), /(?:10\.96\.0\.11|10\.0\.0\.2):53/);
  });

  test('they go to the endpoints of the cluster DNS, and not only to its service', async () => {
    let asked = 0;
    await until(() => {
      world.pod('dig', '+tries=1', '+time=1', `@${SERVICE}`, `n${asked++}.cluster.local`);
      return /10\.0\.0\.2:53/.test(world.node('ss', '-Htn'));
    });
  });

  test('the next query notices that a connection to the cluster is dead, and is asked over another within 100 ms', () => {
    const ask = (name: string): number => {
      const words = ['dig', '+tries=1', '+time=5', `@${SERVICE}`, `${name}.cluster.local`];
      const said = world.pod(...words);
      assert.match(said, /status: NOERROR/);
      return Number(/Query time: (\d+) msec/.exec(said)?.[1]);
    };
    ask('first');
    const ports = [...world.node('ss', '-Htn').matchAll(/:(\d+)\s+10\.(?:96\.0\.11|0\.0\.2):53/g)];
    assert.ok(ports.length > 0);
    const drop = ['OUTPUT', '-p', 'tcp', '-m', 'multiport', '--sports'];
    const dead = [...drop, ports.map(([, port]) => port).join(','), '-j', 'DROP'];
    world.node('iptables', '-I', ...dead);
    const took = ask('second');
    world.node('iptables', '-D', ...dead);
    assert.ok(took < 400, `it took ${took} ms`);
  });

  test('the rules are those of NodeLocal DNSCache', () => {
    for (const [table, chain, match, target] of [
      ['raw', 'PREROUTING', '-d IP --dport 53', 'NOTRACK'],
      ['filter', 'INPUT', '-d IP --dport 53', 'ACCEPT'],
      ['raw', 'OUTPUT', '-s IP --sport 53', 'NOTRACK'],
      ['filter', 'OUTPUT', '-s IP --sport 53', 'ACCEPT'],
      ['raw', 'OUTPUT', '-d IP --dport 53', 'NOTRACK'],
      ['raw', 'OUTPUT', '-d IP --dport 8080', 'NOTRACK'],
      ['raw', 'OUTPUT', '-s IP --sport 8080', 'NOTRACK'],
    ] as const) {
      const comment = `NodeLocal DNS Cache: ${table === 'raw' ? 'skip conntrack' : 'allow DNS traffic'}`;
      for (const ip of [LOCAL, SERVICE])
        for (const protocol of match.includes('8080') ? ['tcp'] : ['tcp', 'udp']) {
          const words = match.replace('IP', ip).split(' ');
          const check = ['-p', protocol, ...words, '-j', target, '-m', 'comment', '--comment'];
          assert.equal(
            world.node('iptables', '-t', table, '-C', chain, ...check, comment),
            '',
            `${table} ${chain} ${protocol} ${words.join(' ')}`,
          );
        }
    }
  });

  test('no entry of the connection table is made for queries of pods', () => {
    world.node('conntrack', '-F');
    assert.equal(world.who(SERVICE), WHO.node);
    assert.doesNotMatch(world.node('conntrack', '-L'), /src=10\.1\.0\.2/);
  });

  test('health is on the link-local address, and errors of the set-up are counted on port 9353', () => {
    assert.equal(world.node('curl', '-s', `http://${LOCAL}:8080/health`), 'OK');
    const metrics = world.node('curl', '-s', 'http://127.0.0.1:9353/metrics');
    for (const kind of [
      'iptables',
      'iptables_lock',
      'interface_add',
      'interface_check',
      'configmap',
    ])
      assert.match(
        metrics,
        new RegExp(`coredns_nodecache_setup_errors_total\\{errortype="${kind}"\\} 0`),
      );
  });

  test('what others flush is back within two seconds, and no query is lost meanwhile', async () => {
    const stop = await world.ask(SERVICE);
    await wait(300);
    world.node('iptables', '-t', 'raw', '-F');
    const took = await until(() => left().split('NodeLocal').length > 30);
    assert.ok(took < 2000, `it took ${took} ms`);
    assert.deepEqual(unanswered(await stop()), []);
    await until(() => world.who(SERVICE) === WHO.node);
  });

  test('an interface that others delete is back within a second', async () => {
    const stop = await world.ask(SERVICE);
    await wait(300);
    const at = Date.now();
    world.node('ip', 'link', 'delete', 'nodelocaldns');
    await until(() => world.who(SERVICE) === WHO.node);
    const window = outage(await stop(), at);
    assert.ok(window <= WINDOW_MS, `nobody answered for ${window} ms`);
  });

  test('stopped, it lets go of the address within a second; let go on, it has it back', async () => {
    const stop = await world.ask(SERVICE);
    await wait(300);
    const at = Date.now();
    cache.signal('SIGSTOP');
    await until(() => world.who(SERVICE) === WHO.cluster);
    await wait(500);
    cache.signal('SIGCONT');
    await until(() => world.who(SERVICE) === WHO.node);
    const asked = await stop();
    const window = outage(asked, at);
    assert.ok(window <= WINDOW_MS, `nobody answered for ${window} ms`);
  });

  test('killed, it lets go of the address within a second, and nothing of it is left', async () => {
    const stop = await world.ask(SERVICE);
    await wait(300);
    const at = Date.now();
    cache.signal('SIGKILL');
    await until(() => left() === '', 5000);
    await until(() => world.who(SERVICE) === WHO.cluster);
    const window = outage(await stop(), at);
    assert.ok(window <= WINDOW_MS, `nobody answered for ${window} ms`);
  });

  test('with nft it lets go, too, when it and its helpers are killed at once', async () => {
    cache = await world.cache(['-rules', 'nftables']);
    await until(() => world.who(SERVICE) === WHO.node);
    world.node('nft', 'flush', 'ruleset');
    assert.match(world.node('nft', 'list', 'tables'), /inet nodelocaldns/);
    const stop = await world.ask(SERVICE);
    await wait(300);
    // The rules of kube-proxy were flushed, too: here only the table counts.
    const helpers = world.node('ps', '-o', 'pid=', '--ppid', String(cache.pid)).trim().split(/\s+/);
    assert.equal(helpers.length, 2);
    for (const pid of [cache.pid, ...helpers.map(Number)]) process.kill(pid, 'SIGKILL');
    const took = await until(() => !world.node('nft', 'list', 'tables').includes('nodelocaldns'));
    assert.ok(took < WINDOW_MS, `the table stayed for ${took} ms`);
    await stop();
    await until(() => !world.node('ip', '-br', 'address').includes(SERVICE), 8000);
  });
});

describe('the network of a node cache', { skip: reason ?? false }, () => {
  let world: NodeWorld;
  before(async () => {
    world = await makeNodeWorld();
  });
  after(() => world.close());

  const refused = async (words: readonly string[], pattern: RegExp): Promise<void> => {
    const cache = await world.cache(words, false);
    assert.equal(await cache.exitCode, 1, cache.output());
    assert.match(cache.output(), pattern);
  };

  test('an interface of that name that is somebody else’s is left alone', async () => {
    world.node('ip', 'link', 'add', 'mine', 'type', 'veth');
    const before = world.node('ip', 'link', 'show', 'mine');
    await refused(['-interfacename', 'mine'], /the interface mine is there already.*of type veth/);
    assert.equal(world.node('ip', 'link', 'show', 'mine'), before);
    world.node('ip', 'link', 'delete', 'mine');
  });

  test('SIGTERM takes away what was set up and nothing else, and no query is lost', async () => {
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

  test('a Corefile that cannot be served leaves nothing behind', async () => {
    writeFileSync(join(world.folder, 'broken'), '.:53 {\n nosuch\n}\n');
    await refused(['-basecorefile', join(world.folder, 'broken')], /nosuch/);
    assert.doesNotMatch(world.node('ip', '-br', 'link'), /nodelocaldns/);
    assert.doesNotMatch(world.node('iptables-save', '-t', 'raw'), /--dport 53/);
  });

  test('without the right to change the network it says so', async () => {
    const { spawnSync } = await import('node:child_process');
    const main = join(import.meta.dirname, '../../src/cli/main.ts');
    const words = ['-localip', LOCAL, '-conf', join(world.folder, 'Corefile')];
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
    assert.match(run.stderr, /may not be changed: .*\n.*NET_ADMIN/);
    assert.match(run.stderr, /-setupinterface=false -setupiptables=false/);
  });
});
