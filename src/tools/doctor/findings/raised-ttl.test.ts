import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findingOf, type Given } from '../../../../test/kit/given-answers.ts';

const POD = '10.244.1.2';
/** Clients ask the DNS pod ten times; it asks its upstream once. */
const handedOn = (ttl: number): Given[] => [
  ...Array.from({ length: 10 }, (_, i) => ({
    ...{ atMs: 100 + i * 1000, name: 'db.example.com.', address: '203.0.113.1' },
    ...{ ttl: ttl - i, server: POD },
  })),
  {
    atMs: 99,
    name: 'db.example.com.',
    address: '203.0.113.1',
    ttl: 5,
    client: POD,
    server: '10.0.0.2',
  },
];

test('a DNS pod that returns an answer with a much higher TTL has a minimum TTL', async () => {
  const found = await findingOf('ND8009', handedOn(3600));
  assert.equal(found?.severity, 'warning');
  assert.match(
    found.seen[0]!,
    /TTL of at most 5 s, while 10\.244\.1\.2 returns 203\.0\.113\.1 with a TTL of up to 3600 s/,
  );
});

test('the minimum TTL of CoreDNS, 5 s, and a TTL of minutes are not reported', async () => {
  assert.equal(await findingOf('ND8009', handedOn(30)), undefined);
});

test('an old address with a great TTL beside a new one with a small TTL is critical', async () => {
  const direct = { name: 'db.example.com.', address: '203.0.113.2', ttl: 5, server: '10.0.0.2' };
  const old = handedOn(3600).slice(0, 10);
  const found = await findingOf('ND8009', [...old, { atMs: 5000, ...direct }]);
  assert.equal(found?.severity, 'critical');
  // Afterwards the record may have changed.
  assert.equal(await findingOf('ND8009', [...old, { atMs: 20_000, ...direct }]), undefined);
});
