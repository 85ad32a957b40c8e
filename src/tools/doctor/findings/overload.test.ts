import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';
import { examine } from '../../../../test/kit/story.ts';
import type { Finding } from './finding.ts';

/** Two queries for a cluster name every 35 ms, from separate sockets. @param waitMs how long the reply takes */
async function findingFor(
  waitMs: (atMs: number, nth: number) => number,
  { server = '10.96.0.10', name = 'db.shop.svc.cluster.local.' } = {},
): Promise<Finding | undefined> {
  const packets = Array.from({ length: 600 }, (_, nth) => {
    const atMs = nth * 35;
    const way = ends(nth % 2 === 0 ? '10.244.1.7' : '10.244.1.8', 20_000 + nth, server);
    return asked(atMs, way, name, nth + 1, { tookMs: waitMs(atMs, nth) });
  });
  const { findings } = await examine(inOrder(packets));
  return findings.find(({ code }) => code === 'ND7001');
}

/** The process runs 60 ms of each 380 ms. */
const PERIOD_MS = 380;
const RUNS_MS = 60;
const throttled = (atMs: number): number =>
  atMs % PERIOD_MS < RUNS_MS ? 0.3 : PERIOD_MS - (atMs % PERIOD_MS) + 0.3;

test('a pod that is throttled for parts of a second stalls, even if nothing is lost', async () => {
  // Half of the queries go to another pod.
  const one = await findingFor((atMs, nth) => (nth % 4 < 2 ? 0.3 : throttled(atMs)));
  assert.equal(one?.severity, 'warning');
  assert.match(one.title, /One DNS pod/);
  assert.match(one.seen.join(' '), /in bursts/);
});

/** A number from 0 to 1 that looks random. */
const scattered = (nth: number): number => ((nth * 2_654_435_761) % 2 ** 32) / 2 ** 32;

test('late replies that do not come together, or only once, are not stalls', async () => {
  const jitter = await findingFor((_, nth) =>
    scattered(nth) < 0.7 ? 0.3 : 20 + 300 * scattered(nth * nth),
  );
  assert.equal(jitter, undefined);
  const once = await findingFor((atMs) =>
    atMs > 3000 && atMs < 5000 ? Math.min(throttled(atMs), 300) : 0.3,
  );
  assert.equal(once, undefined);
});

test('external names that wait for an upstream in bursts are not stalls of the server', async () => {
  const found = await findingFor((atMs, nth) => (nth % 4 < 2 ? 0.3 : throttled(atMs)), {
    name: 'api.example.com.',
  });
  assert.equal(found, undefined);
});
