import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE } from '../../../server/wire/iana.ts';
import { findingOf, others, type Given } from '../../../../test/kit/given-answers.ts';

/** Names that are asked for once, from one pod, some with an answer. */
const many = (of: (nth: number) => Partial<Given>): Given[] =>
  Array.from({ length: 80 }, (_, nth) => ({
    ...{ atMs: nth * 100, client: '10.244.1.66' },
    ...{ name: `${((nth + 1) * 0x9e3779b1).toString(36)}.shop.example.`, ...of(nth) },
  }));

test('a flood of random names is reported with domain and client, regardless of the answers', async () => {
  for (const rcode of [RCODE.SERVFAIL, RCODE.REFUSED, RCODE.NXDOMAIN]) {
    const found = await findingOf('ND2018', [...others(20), ...many(() => ({ reply: { rcode } }))]);
    const text = found?.seen.join(' ') ?? '';
    assert.match(text, /80 different names below shop\.example\./);
    assert.match(text, /10\.244\.1\.66 queried 100 %/);
    assert.equal(found?.severity, rcode === RCODE.NXDOMAIN ? 'warning' : 'critical');
  }
  const wildcard = [...others(20), ...many(() => ({ address: '198.51.100.7' }))];
  assert.equal((await findingOf('ND2018', wildcard))?.severity, 'warning');
});

test('many hosts in one domain, block lists and numbered names are not a flood', async () => {
  const hosts = many((nth) => ({ address: `198.51.100.${nth}` }));
  assert.equal(await findingOf('ND2018', [...others(20), ...hosts]), undefined);
  const numbered = many((nth) => ({
    name: `h${nth}.shop.example.`,
    reply: { rcode: RCODE.SERVFAIL },
  }));
  assert.equal(await findingOf('ND2018', [...others(20), ...numbered]), undefined);
  const listed = many((nth) => ({
    name: `${nth}.2.0.192.zen.example.`,
    reply: { rcode: RCODE.NXDOMAIN },
  }));
  assert.equal(await findingOf('ND2018', [...others(20), ...listed]), undefined);
  const again = many((nth) => ({
    name: `h${nth % 8}.shop.example.`,
    reply: { rcode: RCODE.SERVFAIL },
  }));
  assert.equal(await findingOf('ND2018', [...others(20), ...again]), undefined);
});
