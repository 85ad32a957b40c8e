import assert from 'node:assert/strict';
import { test } from 'node:test';
import { soa } from '../../../../test/kit/content-stories.ts';
import { findingOf, others, type Given } from '../../../../test/kit/given-answers.ts';

const NAMES = ['api.payments.com.', 'events.metrics.io.'] as const;

/** Lookups of two IPv4-only names. @param isMade whether a reply has a created address */
const lookups = (
  prefix: string,
  isMade: (nth: number) => boolean,
  server: (nth: number) => string = () => 'fd00:96::a',
): Given[] =>
  Array.from({ length: 20 }, (_, nth): Given[] => {
    const at = {
      atMs: nth * 1000,
      name: NAMES[nth % 2]!,
      client: 'fd00:10::7',
      server: server(nth),
    };
    const type = 'AAAA';
    return [
      { ...at, address: `203.0.113.${1 + (nth % 2)}` },
      isMade(nth)
        ? { ...at, type, address: `${prefix}cb00:710${1 + (nth % 2)}` }
        : { ...at, type, reply: { authority: [soa(at.name)] } },
    ];
  }).flat();

test('names that alternate between a DNS64 address and none have ND8020, for any prefix', async () => {
  for (const prefix of ['64:ff9b::', '2001:db8:64::']) {
    const found = await findingOf('ND8020', [
      ...others(20),
      ...lookups(prefix, (nth) => nth % 4 < 2),
    ]);
    assert.match(found?.seen[0] ?? '', new RegExp(`${prefix}/96`));
    assert.match(found!.seen.join(' '), /capture does not show which/);
  }
});

test('the server without DNS64 is named if the capture shows it', async () => {
  const isMade = (nth: number): boolean => nth % 4 < 2;
  const found = await findingOf(
    'ND8020',
    lookups('64:ff9b::', isMade, (nth) => (isMade(nth) ? 'fd00:10::a' : 'fd00:10::b')),
  );
  assert.match(found!.seen.join(' '), /fd00:10::b never did/);
});

test('DNS64 that is switched on once, or that answers always, has no ND8020', async () => {
  assert.equal(
    await findingOf(
      'ND8020',
      lookups('64:ff9b::', (nth) => nth > 10),
    ),
    undefined,
  );
  assert.equal(
    await findingOf(
      'ND8020',
      lookups('64:ff9b::', () => true),
    ),
    undefined,
  );
});

test('an upstream without DNS64, which the server with DNS64 asks, has no ND8020', async () => {
  const own = lookups('64:ff9b::', () => true).map((each) => ({ ...each, server: '10.244.1.3' }));
  const cluster = own.map(({ atMs }, nth) => ({
    ...{ atMs: atMs + 10, name: `db${nth % 3}.shop.svc.cluster.local.`, address: '10.96.3.7' },
    server: '10.244.1.3',
  }));
  const upstream = lookups('64:ff9b::', () => false).map((each) => ({
    ...each,
    ...{ atMs: each.atMs + 1, client: '10.244.1.3', server: '10.0.0.2' },
  }));
  assert.equal(await findingOf('ND8020', [...own, ...cluster, ...upstream]), undefined);
});
