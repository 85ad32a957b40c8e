import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  back,
  dnsMessage,
  framed,
  TCP,
  tcpPacket,
  type Captured,
} from '../../../../test/kit/packets.ts';
import { asked, at, dbTruncated, ends, inOrder, pods } from '../../../../test/kit/story-parts.ts';
import { examine, play } from '../../../../test/kit/story.ts';
import type { Finding } from './finding.ts';

/**
 * At a DNS pod: one client's TCP is missing, that of others is there.
 * @param resolver its resolver
 * @param part whether truncated replies contain an address
 */
async function atPod(resolver: string, part = false): Promise<Finding | undefined> {
  const silent = pods(resolver, 1, { names: ['db'], lookups: 10 });
  const others = pods('glibc', 3, { from: 40, names: ['db', 'redis'], lookups: 10 });
  const packets = await play([...silent, ...others], (passing) => ({
    ...dbTruncated(passing),
    ...(part && passing.protocol === 'udp' && { addresses: ['10.96.7.7'] }),
  }));
  const own = silent[0]!.address.split('.').map(Number);
  const isOwnTcp = ({ bytes }: (typeof packets)[number]): boolean =>
    bytes[9] === 6 && [12, 16].some((from) => own.every((part, nth) => bytes[from + nth] === part));
  const { findings } = await examine(packets.filter((packet) => !isOwnTcp(packet)));
  return findings.find(({ code }) => code === 'ND3011');
}

test('at a DNS pod, a client without TCP either does not retry or is blocked before', async () => {
  for (const resolver of ['glibc', 'go']) {
    const found = await atPod(resolver);
    assert.ok(found !== undefined && found.confidence <= 0.6, resolver);
    assert.match(found.title, /does not show whether/);
    assert.match(found.why, /blocked before this point.*do not use TCP/);
    assert.match(found.seen.join(' '), /No TCP from 10\.244\.1\.1 .* while others/);
  }
});

test('a resolver that is known to have no TCP does not retry', async () => {
  const found = await atPod('evdns');
  assert.match(found?.title ?? '', /does not retry over TCP/);
  assert.equal(found?.confidence, 0.9);
});

test('a resolver that uses the part that arrived is information', async () => {
  assert.equal((await atPod('musl'))?.severity, 'critical');
  const found = await atPod('musl', true);
  assert.match(found?.title ?? '', /does not retry over TCP/);
  assert.equal(found?.severity, 'info');
});

const [LEAKER, VICTIM, CACHE] = ['10.244.1.66', '10.244.1.7', '169.254.20.10'];

/**
 * Connections until a moment, and unanswered ones since. @param isLeaking the first client closes none of its own
 * @param hasBacklog the last ones are accepted, but their queries get no reply
 */
async function untilFull(
  isLeaking: boolean,
  isLeakerSeen: boolean,
  hasBacklog: boolean,
): Promise<Finding | undefined> {
  const connect = (client: string, second: number, isClosed: boolean): Captured[] => {
    const way = { from: client, fromPort: 30_000 + second, to: CACHE, toPort: 53 };
    const ms = second * 1000;
    if (second >= 20)
      return [0, 1000, 2000].map((afterMs) => at(ms + afterMs, tcpPacket(way, 1, TCP.SYN)));
    return [
      at(ms, tcpPacket(way, 1, TCP.SYN)),
      at(ms + 0.1, tcpPacket(back(way), 1, TCP.SYN | TCP.ACK)),
      ...(hasBacklog && second >= 15
        ? [at(ms + 1, tcpPacket(way, 2, TCP.PSH | TCP.ACK, query(second)))]
        : []),
      ...(isClosed ? [at(ms + 5, tcpPacket(way, 2, TCP.FIN | TCP.ACK))] : []),
    ];
  };
  const query = (id: number): Uint8Array => framed(dnsMessage('large.example.com.', 'A', { id }));
  const packets = Array.from({ length: 40 }, (_, second) => [
    ...(isLeakerSeen ? connect(LEAKER, second, !isLeaking) : []),
    ...connect(VICTIM, second, true),
    ...asked(second * 1000, ends(VICTIM, 20_000 + second, CACHE), 'www.example.com.', second + 1),
  ]);
  return (await examine(inOrder(packets))).findings.find(({ code }) => code === 'ND3011');
}

test('a client that leaves its connections open uses up those of the server', async () => {
  const found = await untilFull(true, true, false);
  assert.match(found?.title ?? '', /never closes its TCP connections/);
  assert.match(found!.seen[0]!, /10\.244\.1\.66 opened 20 TCP connections/);
});

test('TCP that was accepted and then not served is not closed in general, and both causes are named', async () => {
  for (const found of [await untilFull(false, true, true), await untilFull(true, false, true)]) {
    assert.match(found?.title ?? '', /stopped working during the capture/);
    assert.match(found!.why, /in use.*policy or firewall/);
  }
});

test('if no connection was left unserved, a rule is more likely, and the finding says since when', async () => {
  const found = await untilFull(false, true, false);
  assert.match(found?.title ?? '', /does not get through/);
  assert.match(found!.seen[0]!, /accepted 40 TCP connections from the same clients/);
  assert.match(found!.why, /came into effect at about .*may be in use/);
});

/**
 * At a DNS pod, whose kernel accepts each connection.
 * @param isLeaking the first client closes none of its own
 * @param hasUdp clients also query over UDP
 */
async function atFullPod(isLeaking: boolean, hasUdp = true): Promise<Finding | undefined> {
  const serverMs = 0.3;
  const connect = (client: string, second: number, isClosed: boolean): Captured[] => {
    const way = { from: client, fromPort: 30_000 + second, to: '10.244.2.5', toPort: 53 };
    const message = (isReply: boolean): Uint8Array =>
      framed(dnsMessage('large.example.com.', 'A', { id: second + 1, reply: isReply }));
    const ms = second * 1000;
    return [
      at(ms, tcpPacket(way, 1, TCP.SYN)),
      at(ms + 0.1, tcpPacket(back(way), 1, TCP.SYN | TCP.ACK)),
      at(ms + 1, tcpPacket(way, 2, TCP.PSH | TCP.ACK, message(false))),
      ...(second < 20
        ? [at(ms + 1 + serverMs, tcpPacket(back(way), 2, TCP.PSH | TCP.ACK, message(true)))]
        : []),
      ...(isClosed ? [at(ms + 900, tcpPacket(way, 40, TCP.FIN | TCP.ACK))] : []),
    ];
  };
  const packets = Array.from({ length: 40 }, (_, second) => [
    ...connect(LEAKER, second, !isLeaking),
    ...connect(VICTIM, second, true),
    ...(hasUdp
      ? asked(second * 1000, ends(VICTIM, 20_000 + second, '10.244.2.5'), 'a.example.', second + 1)
      : []),
  ]);
  return (await examine(inOrder(packets))).findings[0];
}

test('at a DNS pod, connections that are accepted but not served show the client that leaks its own', async () => {
  const found = await atFullPod(true);
  assert.match(found?.title ?? '', /never closes its TCP connections/);
  assert.match(found!.seen[0]!, /10\.244\.1\.66 opened 21 TCP connections/);
  assert.doesNotMatch((await atFullPod(false))?.title ?? '', /never closes/);
});

test('a leak is found if all clients use only TCP, so that the server seems to stop', async () => {
  assert.match((await atFullPod(true, false))?.title ?? '', /never closes its TCP connections/);
  assert.doesNotMatch((await atFullPod(false, false))?.title ?? '', /never closes/);
});

/** A client with 30 connections that stay open, and one whose first packets are all dropped. @param another whether a third client is served */
async function besideOpenOnes(another: boolean): Promise<Finding | undefined> {
  const opened = (client: string, fromPort: number, ms: number, isClosed: boolean): Captured[] => {
    const way = { from: client, fromPort, to: CACHE, toPort: 53 };
    return [
      at(ms, tcpPacket(way, 1, TCP.SYN)),
      at(ms + 0.1, tcpPacket(back(way), 1, TCP.SYN | TCP.ACK)),
      ...(isClosed ? [at(ms + 5, tcpPacket(way, 2, TCP.FIN | TCP.ACK))] : []),
    ];
  };
  const packets = Array.from({ length: 40 }, (_, second) => [
    ...(second < 30 ? opened('10.244.1.66', 30_000 + second, second * 300, false) : []),
    ...(another ? opened('10.244.1.88', 32_000 + second, second * 1000, true) : []),
    ...asked(second * 1000, ends(VICTIM, 20_000 + second, CACHE), 'www.example.com.', second + 1),
    ...(second < 10
      ? []
      : [0, 1000, 3000].map((ms) => {
          const way = { from: VICTIM, fromPort: 31_000 + second, to: CACHE, toPort: 53 };
          return at(second * 1000 + ms, tcpPacket(way, 1, TCP.SYN));
        })),
  ]);
  return (await examine(inOrder(packets))).findings.find(({ code }) => code === 'ND3011');
}

test('connections that stay open do not explain a client that was never served, or the only one that is not', async () => {
  for (const another of [true, false]) {
    const found = await besideOpenOnes(another);
    assert.equal(found?.severity, 'critical');
    assert.doesNotMatch(found.title, /never closes/);
  }
});

/** Connections that stay open, and a client whose connections are not answered for a few seconds. */
async function restarted(isLeakerSeen: boolean): Promise<Finding | undefined> {
  const opened = (client: string, fromPort: number, ms: number, isClosed: boolean): Captured[] => {
    const way = { from: client, fromPort, to: CACHE, toPort: 53 };
    return [
      at(ms, tcpPacket(way, 1, TCP.SYN)),
      at(ms + 0.1, tcpPacket(back(way), 1, TCP.SYN | TCP.ACK)),
      ...(isClosed ? [at(ms + 5, tcpPacket(way, 2, TCP.FIN | TCP.ACK))] : []),
    ];
  };
  const packets = Array.from({ length: 40 }, (_, nth) => [
    ...(isLeakerSeen && nth < 20 ? opened(LEAKER, 30_000 + nth, nth * 300, false) : []),
    ...(nth >= 20 && nth < 24
      ? [0, 1000, 3000].map((ms) => {
          const way = { from: VICTIM, fromPort: 32_000 + nth, to: CACHE, toPort: 53 };
          return at(nth * 1000 + ms, tcpPacket(way, 1, TCP.SYN));
        })
      : opened(VICTIM, 32_000 + nth, nth * 1000, true)),
    ...asked(nth * 1000, ends(VICTIM, 20_000 + nth, CACHE), 'www.example.com.', nth + 1),
  ]);
  return (await examine(inOrder(packets))).findings.find(({ code }) => code === 'ND3011');
}

test('TCP that is answered again is not blocked, and open connections did not use it up', async () => {
  for (const isLeakerSeen of [true, false]) {
    const found = await restarted(isLeakerSeen);
    assert.match(found?.title ?? '', /not answered for a time/);
    assert.equal(found!.severity, 'warning');
    assert.doesNotMatch(found!.why, /came into effect|policy allows only UDP/);
  }
});
