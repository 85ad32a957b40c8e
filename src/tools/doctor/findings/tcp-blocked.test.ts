import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dbTruncated, pods } from '../../../../test/kit/story-parts.ts';
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
