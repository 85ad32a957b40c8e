import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE } from '../../../server/wire/iana.ts';
import { findingOf, given, type Given } from '../../../../test/kit/given-answers.ts';
import { examine } from '../../../../test/kit/story.ts';

const [POD, UPSTREAM] = ['10.244.1.5', '10.0.0.2'];
const hooks = { name: 'hooks.example.com.', address: '192.0.2.7' };

/** A program looks up one name ten times a second. @param isForwarded by second and turn */
function queries(isForwarded: (nth: number) => boolean, ttlAt: (nth: number) => number): Given[] {
  return Array.from({ length: 400 }, (_, nth): Given[] => [
    { ...hooks, atMs: nth * 100, server: POD, ttl: ttlAt(nth), reply: { tookMs: 9 } },
    ...(isForwarded(nth)
      ? [{ ...hooks, atMs: nth * 100 + 1, client: POD, server: UPSTREAM, ttl: 300 }]
      : []),
  ]).flat();
}

test('a DNS pod that forwards a name again and again within its TTL does not cache', async () => {
  const found = await findingOf(
    'ND4073',
    queries(
      () => true,
      () => 300,
    ),
  );
  assert.match(found?.seen[0] ?? '', /399 of 400 .* from 10\.244\.1\.5 repeat .*TTL 300 s/);
  assert.match(found!.seen.join(' '), /10\.244\.1\.7 sends 100 %/);
});

test('a cache that fetches the name when its own limit is over is one', async () => {
  const cached = queries(
    (nth) => nth % 50 === 0,
    (nth) => 5 - Math.floor((nth % 50) / 10),
  );
  assert.equal(await findingOf('ND4073', cached), undefined);
});

/** A client's file: every third query fails after 2 s. @param ttlAt of the answers */
const atClient = (ttlAt: (nth: number) => number): Given[] =>
  Array.from({ length: 150 }, (_, nth): Given => {
    const isFailing = nth % 3 === 2;
    return isFailing
      ? { name: hooks.name, atMs: nth * 300, reply: { rcode: RCODE.SERVFAIL, tookMs: 2000 } }
      : { ...hooks, atMs: nth * 300, ttl: ttlAt(nth) };
  });

test('full TTLs, and failures while an answer is valid, show a server without a cache', async () => {
  const [first] = (await examine(given(atClient(() => 300)))).findings;
  assert.equal(first?.code, 'ND4073');
  assert.match(first.seen[0]!, /All 100 answers from 10\.96\.0\.10 had the full TTL/);
  const counting = await findingOf(
    'ND4073',
    atClient((nth) => 300 - Math.floor(nth / 4)),
  );
  assert.equal(counting, undefined);
});

test('a program that queries the upstream of a DNS pod itself is not called a DNS server, and other names do not make it critical', async () => {
  const queries = Array.from({ length: 600 }, (_, nth): Given[] => [
    { ...hooks, atMs: nth * 100, client: '10.244.1.30', server: UPSTREAM, ttl: 60 },
    ...(nth % 5 === 0
      ? [POD, UPSTREAM].map((server, step): Given => {
          const name = `x${nth}.example.org.`;
          const client = step === 0 ? '10.244.1.7' : POD;
          return { name, atMs: nth * 100 + 3 + step, address: '192.0.2.9', client, server };
        })
      : []),
  ]).flat();
  const failing = Array.from({ length: 12 }, (_, nth): Given => ({
    ...{ name: 'lost.example.net.', atMs: nth * 5000 + 50, server: POD },
    reply: { rcode: RCODE.SERVFAIL, tookMs: 30 },
  }));
  const found = await findingOf('ND4073', [...queries, ...failing]);
  assert.equal(found?.severity, 'info');
  assert.match(found.title, /A client of an upstream/);
});
