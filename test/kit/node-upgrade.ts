/** One node cache instance takes over from another while a pod is sending queries. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SERVICE, WHO, type NodeWorld } from './node-world.ts';

const RATE = 5000;

/** Replaces an instance at 5 000 queries per second and checks that no query and no cache entry is lost. */
export async function upgradeUnderLoad(
  world: NodeWorld,
  rules: 'iptables' | 'nftables',
  seconds: number,
): Promise<void> {
  const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
  const first = await world.cache(['-rules', rules]);
  while (world.who(SERVICE) !== WHO.node) await wait(50);
  const names = Array.from({ length: 100 }, (_, i) => `n${i}.cluster.local A`);
  writeFileSync(join(world.directory, 'names'), `${names.join('\n')}\n`);
  const load = world.start('dnsperf', 'pod', [
    ...['dnsperf', '-s', SERVICE, '-d', join(world.directory, 'names')],
    ...['-Q', String(RATE), '-l', String(seconds), '-t', '2', '-O', 'suppress=timeout'],
  ]);
  await wait(1000);
  const next = await world.cache(['-rules', rules]);
  assert.equal(await first.exitCode, 0, first.output());
  assert.equal(await load.exitCode, 0);
  assert.match(next.output(), /The other instance has released the addresses/);
  const said = load.output();
  const count = (what: string): number =>
    Number(new RegExp(`Queries ${what}:\\s+(\\d+)`).exec(said)?.[1]);
  assert.ok(count('sent') > RATE * seconds * 0.5, said);
  assert.equal(count('lost'), 0, said);
  const metrics = world.node('curl', '-s', 'http://127.0.0.1:9253/metrics');
  const misses = metrics.matchAll(/^coredns_cache_misses_total\{.*cluster\.local.*\} (\d+)/gm);
  const missed = [...misses].reduce((sum, [, each]) => sum + Number(each), 0);
  // Entries are valid for 30 s, so all of them were transferred.
  assert.ok(missed < 10, `${missed} of ${count('sent')} were queried again`);
  next.signal('SIGTERM');
  assert.equal(await next.exitCode, 0);
}
