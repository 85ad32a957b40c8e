import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dnsMessage, icmpError, udpPacket, type Captured } from '../../../../test/kit/packets.ts';
import { examine } from '../../../../test/kit/story.ts';
import { asked, at, ends, inOrder } from '../../../../test/kit/story-parts.ts';

const SERVICE = '10.96.0.10';
const PODS = ['10.244.1.11', '10.244.2.12', '10.244.1.13'] as const;
const CLIENTS = ['10.244.1.5', '10.244.1.6'] as const;

/** A query that comes back as port unreachable. @param sender of the ICMP error */
function rejected(
  atMs: number,
  client: string,
  port: number,
  server: string,
  sender = server,
): Captured[] {
  const query = udpPacket(
    ends(client, port, server),
    dnsMessage(`n${port % 7}.example.com.`, 'A', { id: port }),
    port,
  );
  return [at(atMs, query), at(atMs + 0.1, icmpError(sender, query, 3, 3, client))];
}

/** Queries every 100 ms for 40 s. @param isClosed whether the port is closed then */
function traffic(
  server: string,
  isClosed: (atMs: number, i: number) => boolean,
  sender = server,
): readonly Captured[] {
  return inOrder(
    Array.from({ length: 400 }, (_, i) => {
      const [atMs, port, client] = [i * 100, 30_000 + i, CLIENTS[i % 2]!];
      return isClosed(atMs, i)
        ? rejected(atMs, client, port, server, sender)
        : asked(atMs, ends(client, port, server), `n${port % 7}.example.com.`, port);
    }),
  );
}

const within = (fromS: number, toS: number) => (ms: number) =>
  ms >= fromS * 1000 && ms < toS * 1000;

async function first(packets: readonly Captured[]) {
  const { findings } = await examine(packets);
  return findings[0];
}

test('the node rejects for an address without endpoints: its ICMP errors come from another address', async () => {
  const found = await first(traffic(SERVICE, within(12, 25), '169.254.1.1'));
  assert.equal(found?.code, 'ND5003');
  assert.match(found.seen.join(' '), /169\.254\.1\.1, not from 10\.96\.0\.10/);
});

test('pods reject a share, then the node rejects all queries: the Service has lost its last endpoint', async () => {
  const all = Array.from({ length: 400 }, (_, i) => {
    const [atMs, port, client] = [i * 100, 30_000 + i, CLIENTS[i % 2]!];
    const isOfPod = (atMs >= 10_000 && atMs < 13_000 && i % 4 < 2) || within(13, 15)(atMs);
    if (isOfPod) return rejected(atMs, client, port, SERVICE);
    if (within(15, 30)(atMs)) return rejected(atMs, client, port, SERVICE, '10.0.1.101');
    return asked(atMs, ends(client, port, SERVICE), `n${port % 7}.example.com.`, port);
  });
  const { findings } = await examine(inOrder(all));
  const critical = findings.filter(({ severity }) => severity === 'critical');
  assert.deepEqual(
    critical.map(({ code }) => code),
    ['ND5003'],
  );
  assert.match(critical[0]!.seen.join(' '), /from 10\.0\.1\.101, not from 10\.96\.0\.10/);
  assert.match(
    critical[0]!.seen.join(' '),
    /Before the node did, 10\.96\.0\.10 .* rejected queries/,
  );
});

test('the host of the address rejects once, all queries: its process was away', async () => {
  const found = await first(traffic(SERVICE, within(12, 25)));
  assert.equal(found?.code, 'ND3007');
  assert.equal(found.title, 'A name server stopped answering for a while');
});

test('a link-local address rejects: the cache of the node is not running', async () => {
  const found = await first(traffic('169.254.20.10', within(12, 25)));
  assert.equal(found?.code, 'ND3006');
  assert.match(found.fix.join(' '), /node-local-dns/);
  assert.doesNotMatch(found.fix.join(' '), /k8s-app=kube-dns/);
});

test('a share of the queries is rejected, at several times: processes restart', async () => {
  const isDown = (ms: number, i: number): boolean => i % 4 < 2 && Math.floor(ms / 7000) % 2 === 1;
  const found = await first(traffic(SERVICE, isDown));
  assert.equal(found?.code, 'ND3007');
  assert.match(found.title, /end and restart/);
  assert.match(found.fix.join(' '), /OOMKilled/);
});

test('a share of the queries is rejected from the beginning to the end: an endpoint has no process', async () => {
  const found = await first(traffic(SERVICE, (_, i) => i % 6 < 2));
  assert.equal(found?.code, 'ND3008');
  assert.match(found.title, /no process/);
  assert.doesNotMatch(found.fix.join(' '), /OOMKilled/);
});

test('pods are rejected in turn and get nothing more: a rollout that does not wait', async () => {
  const translated = inOrder(
    Array.from({ length: 400 }, (_, i) => {
      const [atMs, port, client] = [i * 100, 30_000 + i, CLIENTS[i % 2]!];
      // The first pod ends at 10 s and leaves at 15 s, the second ends at 20 s and leaves at 25 s.
      const set = atMs < 15_000 ? PODS.slice(0, 2) : atMs < 25_000 ? PODS.slice(1) : PODS.slice(2);
      const pod = set[(i >> 1) % set.length]!;
      const isClosed = (pod === PODS[0] && atMs >= 10_000) || (pod === PODS[1] && atMs >= 20_000);
      const name = `n${port % 7}.example.com.`;
      const outside = asked(
        atMs,
        ends(client, port),
        name,
        port,
        isClosed ? { tookMs: null } : { tookMs: 1 },
      );
      const inside = asked(
        atMs + 0.1,
        ends(client, port, pod),
        name,
        port,
        isClosed ? { tookMs: null } : { tookMs: 0.5 },
      );
      const query = inside[0]!.bytes;
      return [
        ...outside,
        ...inside,
        ...(isClosed ? [at(atMs + 0.2, icmpError(pod, query, 3, 3, client))] : []),
      ];
    }),
  );
  const found = await first(translated);
  assert.equal(found?.code, 'ND3007');
  assert.match(found.title, /removed too late/);
  assert.match(found.fix.join(' '), /lameduck/);
});

test('the Service’s address rejects while a forwarder sends nothing to the DNS pods: the cache of the node is down', async () => {
  const isDown = (ms: number): boolean => within(8, 18)(ms) || within(25, 34)(ms);
  const passedOn = (cache: string, name: (i: number) => string, server: string) =>
    Array.from({ length: 200 }, (_, i) => i * 200 + 1)
      .filter((ms) => !isDown(ms))
      .map((ms, i) => asked(ms, ends(cache, 45_000 + i, server), name(i), i));
  const cluster = (i: number): string => `s${i % 9}.shop.svc.cluster.local.`;
  const own = Array.from({ length: 9 }, (_, i) =>
    asked(500 + i, ends(CLIENTS[0], 50_000 + i, SERVICE), cluster(i), i),
  );
  const clients = [traffic(SERVICE, isDown), ...own];
  const [node, pod] = ['10.0.1.21', PODS[1]];
  const found = await first(inOrder([...clients, ...passedOn(node, cluster, PODS[0])]));
  assert.equal(found?.code, 'ND3006');
  assert.match(found.seen.join(' '), /10\.0\.1\.21, which queries the DNS pods, sent them nothing/);
  // A DNS pod queries only external names, and its process has ended.
  const outside = (i: number): string => `n${i % 7}.example.com.`;
  const ended = await first(inOrder([...clients, ...passedOn(pod, outside, '10.0.0.2')]));
  assert.equal(ended?.code, 'ND3007');
});

test('a link-local address rejects pods of one node, and the cache of another node answers its own', async () => {
  const cache = '169.254.20.10';
  const there = Array.from({ length: 100 }, (_, i) =>
    asked(i * 400, ends('10.244.2.30', 20_000 + i, cache), 'a.example.com.', i),
  );
  const found = await first(inOrder([traffic(cache, (ms) => ms >= 12_000), ...there]));
  assert.equal(found?.code, 'ND3006');
  assert.match(found.seen.join(' '), /on another node/);
});

test('a link-local address without replies and without ICMP errors may hang', async () => {
  const found = await first(
    inOrder(
      Array.from({ length: 40 }, (_, i) =>
        asked(i * 900, ends(CLIENTS[0]!, 20_000 + i, '169.254.20.10'), 'a.example.com.', i, {
          tookMs: null,
        }),
      ),
    ),
  );
  assert.equal(found?.code, 'ND3006');
  assert.match(found.why, /may hang, or wait for its own upstream/);
});

test('the proxy in a pod rejects at first, and answers later: it starts after the program', async () => {
  const onLoopback = (isClosed: (ms: number) => boolean): readonly Captured[] =>
    inOrder(
      Array.from({ length: 400 }, (_, i) => {
        const [atMs, port] = [i * 100, 30_000 + i];
        const name = `n${port % 7}.example.com.`;
        const query = udpPacket(
          { ...ends(CLIENTS[0], port, '127.0.0.1'), toPort: 15_053 },
          dnsMessage(name, 'A', { id: port }),
          port,
        );
        return isClosed(atMs)
          ? [at(atMs, query), at(atMs + 0.1, icmpError('127.0.0.1', query, 3, 3, CLIENTS[0]))]
          : asked(atMs, { ...ends(CLIENTS[0], port, '127.0.0.1'), toPort: 15_053 }, name, port);
      }),
    );
  const late = await first(onLoopback((ms) => ms < 17_000));
  assert.equal(late?.code, 'ND3060');
  assert.match(late.title, /starts after the program/);
  assert.match(late.fix.join(' '), /holdApplicationUntilProxyStarts/);
  assert.match(late.seen.join(' '), /127\.0\.0\.1:15053/);
  const gone = await first(onLoopback(within(12, 25)));
  assert.equal(gone?.code, 'ND3060');
  assert.doesNotMatch(gone.title, /starts after the program/);
  assert.equal((await first(onLoopback(() => true)))?.code, 'ND3060');
});
