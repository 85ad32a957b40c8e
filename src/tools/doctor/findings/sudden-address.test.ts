import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE } from '../../../server/wire/iana.ts';
import { soa } from '../../../../test/kit/content-stories.ts';
import { findingOf, type Given } from '../../../../test/kit/given-answers.ts';

const domains = ['one.com.', 'two.net.', 'three.org.', 'four.io.'];
/** Each name twenty times; from the given round on, it has the other address. */
const asked = (roundOf: (nth: number) => number, to: (nth: number) => string): Given[] =>
  domains.flatMap((domain, nth) =>
    Array.from({ length: 20 }, (_, i) => ({
      ...{ atMs: i * 1000 + nth * 50, name: `www.${domain}`, ttl: 1 },
      address: i < roundOf(nth) ? `192.0.2.${nth + 1}` : to(nth),
    })),
  );
const missing: Given[] = Array.from({ length: 20 }, (_, i) => ({
  ...{ atMs: i * 1000 + 300, name: 'typo.five.com.' },
  ...(i < 10
    ? { reply: { rcode: RCODE.NXDOMAIN, authority: [soa('five.com.')] } }
    : { address: '10.9.9.9', ttl: 1 }),
}));

test('names of several domains that become one address together are hijacked', async () => {
  const all = [
    ...asked(
      () => 10,
      () => '10.9.9.9',
    ),
    ...missing,
  ];
  const found = await findingOf('ND4041', all);
  assert.equal(found?.severity, 'critical');
  assert.match(
    found.seen.join(' '),
    /did not exist before now have this address, such as typo\.five\.com\./,
  );
  assert.equal(await findingOf('ND8003', all), undefined);
});

test('a name that moves, and names that move to addresses of their own, are not', async () => {
  const one = asked(
    (nth) => (nth === 0 ? 10 : 99),
    () => '10.9.9.9',
  );
  assert.equal(await findingOf('ND4041', one), undefined);
  const own = asked(
    () => 10,
    (nth) => `198.51.100.${nth}`,
  );
  assert.equal(await findingOf('ND4041', own), undefined);
});

/** Three names in one domain, and two in others, from one server. @param to the address of the domain from 10 s on */
const ofOneDomain = (to: (nth: number) => string): Given[] =>
  ['api.shop.com.', 'auth.shop.com.', 'www.shop.com.', 'www.other.com.', 'www.third.org.'].flatMap(
    (name, nth) =>
      Array.from({ length: 20 }, (_, i) => ({
        ...{ atMs: i * 1000 + nth * 50, name, ttl: 1 },
        address: i < 10 || nth > 2 ? `192.0.2.${nth + 1}` : to(nth),
      })),
  );
const invented: Given[] = Array.from({ length: 20 }, (_, i) => ({
  ...{ atMs: i * 1000 + 300, name: 'beta.shop.com.' },
  ...(i < 10
    ? { reply: { rcode: RCODE.NXDOMAIN, authority: [soa('shop.com.')] } }
    : { address: '198.51.100.200', ttl: 1 }),
}));

test('names of one domain that become one address together, with names that did not exist, are parked', async () => {
  const found = await findingOf('ND4072', [...ofOneDomain(() => '198.51.100.200'), ...invented]);
  assert.equal(found?.severity, 'critical');
  assert.match(
    found.seen.join(' '),
    /api\.shop\.com\.[^]*did not exist before[^]*beta\.shop\.com\./,
  );
  assert.match(found.why, /registration/);
});

test('names that an owner moves, each to its own address or without a wildcard, are not parked', async () => {
  assert.equal(
    await findingOf(
      'ND4072',
      ofOneDomain((nth) => `198.51.100.${nth}`),
    ),
    undefined,
  );
  assert.equal(
    await findingOf(
      'ND4072',
      ofOneDomain(() => '198.51.100.200'),
    ),
    undefined,
  );
});
