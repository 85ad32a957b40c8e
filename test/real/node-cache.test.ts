/** The node cache in network namespaces, with the real iptables, nft, conntrack and dig. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Child } from '../kit/child.ts';
import {
  LOCAL,
  makeNodeWorld,
  noNodeWorld,
  outage,
  SERVICE,
  unanswered,
  until,
  wait,
  WHO,
  type NodeWorld,
} from '../kit/node-world.ts';

const reason = noNodeWorld();

/** Pods get answers again. `bench/node-cache.ts` measures the delay, which is longer on a busy machine. */
function isOver(windowMs: number): void {
  assert.ok(Number.isFinite(windowMs), 'nobody answers any more');
}

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

  test('the next query detects that a connection to the cluster is dead, and is sent over another before any client retries', () => {
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
    // Among the pods' resolvers, musl's retries first.
    assert.ok(took < 2500, `it took ${took} ms`);
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

  test('flushed rules are restored automatically, and no query is lost in the meantime', async () => {
    const stop = await world.ask(SERVICE);
    await wait(300);
    world.node('iptables', '-t', 'raw', '-F');
    await until(() => left().split('NodeLocal').length > 30);
    assert.deepEqual(unanswered(await stop()), []);
    await until(() => world.who(SERVICE) === WHO.node);
  });

  test('an interface that others delete is back', async () => {
    const stop = await world.ask(SERVICE);
    await wait(300);
    const at = Date.now();
    world.node('ip', 'link', 'delete', 'nodelocaldns');
    await until(() => world.who(SERVICE) === WHO.node);
    isOver(outage(await stop(), at));
  });

  test('stopped, it releases the address; continued, it has it back', async () => {
    const stop = await world.ask(SERVICE);
    await wait(300);
    const at = Date.now();
    cache.signal('SIGSTOP');
    await until(() => world.who(SERVICE) === WHO.cluster);
    await wait(500);
    cache.signal('SIGCONT');
    await until(() => world.who(SERVICE) === WHO.node);
    isOver(outage(await stop(), at));
  });

  test('killed, it releases the address, and nothing of it is left', async () => {
    const stop = await world.ask(SERVICE);
    await wait(300);
    const at = Date.now();
    cache.signal('SIGKILL');
    await until(() => left() === '');
    await until(() => world.who(SERVICE) === WHO.cluster);
    isOver(outage(await stop(), at));
  });

  test('with nft it also releases the address when it and its helpers are killed at once', async () => {
    cache = await world.cache(['-rules', 'nftables']);
    await until(() => world.who(SERVICE) === WHO.node);
    world.node('nft', 'flush', 'ruleset');
    assert.match(world.node('nft', 'list', 'tables'), /inet nodelocaldns/);
    const stop = await world.ask(SERVICE);
    await wait(300);
    // kube-proxy's rules were flushed too, so only the table is compared here.
    const helpers = world.node('ps', '-o', 'pid=', '--ppid', String(cache.pid)).trim().split(/\s+/);
    assert.equal(helpers.length, 2);
    for (const pid of [cache.pid, ...helpers.map(Number)]) process.kill(pid, 'SIGKILL');
    await until(() => !world.node('nft', 'list', 'tables').includes('nodelocaldns'));
    await stop();
    await until(() => !world.node('ip', '-br', 'address').includes(SERVICE));
  });
});
