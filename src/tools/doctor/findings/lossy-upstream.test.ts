import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';
import { examine } from '../../../../test/kit/story.ts';
import type { Finding } from './finding.ts';

const [CLIENT, POD, UPSTREAM] = ['10.244.1.21', '10.244.0.5', '10.11.0.2'];

/** The same number from 0 to 1 for the same argument. */
const chance = (nth: number): number => (Math.imul((nth + 1) ** 2, 0x9e3779b1) >>> 0) / 2 ** 32;

interface Traffic {
  readonly isLost: (nth: number, atMs: number) => boolean;
  readonly nameOf?: (nth: number) => string;
  readonly ttl?: number;
}

/** At a DNS pod: 12 busy seconds follow 12 calm ones. A query that the upstream does not answer is repeated after 2 s. */
async function atPod({ isLost, nameOf, ttl = 60 }: Traffic): Promise<Finding | undefined> {
  const times = [
    ...Array.from({ length: 60 }, (_, nth) => nth * 200),
    ...Array.from(
      { length: 600 },
      (_, nth) => 12_000 + (12_000 * (nth + Math.sin(nth / 40) * 15)) / 600,
    ),
  ];
  const packets = times.map((atMs, nth) => {
    const name = nameOf?.(nth) ?? `host${nth}.example${nth % 9}.com.`;
    const way = ends(CLIENT, 20_000 + nth, POD);
    const up = { id: 7000 + nth, fromPort: 30_000 + nth };
    const lost = isLost(nth, atMs);
    const first = asked(atMs + 0.2, ends(POD, up.fromPort, UPSTREAM), name, up.id, {
      tookMs: lost ? null : 5,
      ttl,
    });
    const again = asked(atMs + 2000, ends(POD, up.fromPort + 1000, UPSTREAM), name, up.id + 1000, {
      tookMs: name.startsWith('www.dead.') ? null : 5,
      ttl,
    });
    return [
      ...asked(atMs, way, name, nth, { tookMs: lost ? 2006 : 6, ttl }),
      ...first,
      ...(lost ? again : []),
      ...asked(atMs + 10, ends(CLIENT, 50_000 + nth, POD), 'db.shop.svc.cluster.local.', nth),
    ];
  });
  const { findings } = await examine(inOrder(packets));
  return findings[0];
}

test('an upstream that drops queries under load comes before the late replies that it causes', async () => {
  const first = await atPod({ isLost: (nth, atMs) => atMs >= 12_000 && chance(nth) < 0.3 });
  assert.equal(first?.code, 'ND3061');
  assert.match(first.title, /An upstream leaves some of the DNS pods’ queries unanswered/);
  assert.match(first.seen.join(' '), /from 10\.244\.0\.5 to 10\.11\.0\.2 got no reply/);
  assert.match(first.seen.join(' '), /loss grows with the load: it was 0 %/);
});

test('the same loss at any load does not prove a limit', async () => {
  const first = await atPod({ isLost: (nth) => chance(nth) < 0.3 });
  assert.match(first?.title ?? '', /An upstream leaves some/);
  assert.doesNotMatch(first!.seen.join(' '), /grows with the load/);
});

test('a name with TTL 0 that makes up the load is named', async () => {
  const first = await atPod({
    isLost: (nth) => chance(nth) < 0.3,
    nameOf: () => 'match.session-broker.gg.',
    ttl: 0,
  });
  assert.match(first?.title ?? '', /most of them for a name with TTL 0/);
});

test('names that are never answered do not count', async () => {
  const first = await atPod({
    isLost: (nth) => nth % 4 === 0,
    nameOf: (nth) => (nth % 4 === 0 ? 'www.dead.example.' : `host${nth}.example.com.`),
  });
  assert.doesNotMatch(first?.title ?? '', /An upstream leaves/);
});
