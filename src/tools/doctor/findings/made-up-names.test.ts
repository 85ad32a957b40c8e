import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE } from '../../../server/wire/iana.ts';
import { findingOf, others, type Given } from '../../../../test/kit/given-answers.ts';
import { examine } from '../../../../test/kit/story.ts';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';

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

test('names that exist in part belong to a crawler, so they are a warning and no zone is denied', async () => {
  // A third of the names fail, as they do if an upstream is overloaded.
  const partly = many((nth) =>
    nth % 3 === 0
      ? { reply: { rcode: RCODE.SERVFAIL } }
      : { address: `198.51.100.${nth % 3 === 1 ? nth : 7}` },
  );
  const found = await findingOf('ND2018', [...others(20), ...partly]);
  assert.equal(found?.severity, 'warning');
  assert.match(found.title, /^A client queries very many different names/);
  assert.doesNotMatch(found.fix.join(' '), /NXDOMAIN|intrusion/);
});

test('addresses that all send the same random names pass them on, so no program is stopped there', async () => {
  const both = many(() => ({ reply: { rcode: RCODE.SERVFAIL } })).flatMap((each, nth) => [
    { ...each, client: '10.244.2.5' },
    ...(nth % 2 === 0 ? [{ ...each, atMs: each.atMs + 30, client: '10.244.2.9' }] : []),
  ]);
  const found = await findingOf('ND2018', [...others(20), ...both]);
  assert.match(found?.seen.join(' ') ?? '', /passes on|does not show the client/);
  assert.doesNotMatch(found?.fix.join(' ') ?? '', /stop the program/);
});

test('an address that behaves like no known resolver may be a DNS server', async () => {
  // Pods send A first, then AAAA for the same name.
  const flood = many((nth) => ({
    atMs: Math.floor(nth / 2) * 200,
    name: `${((Math.floor(nth / 2) + 1) * 0x9e3779b1).toString(36)}.shop.example.`,
    type: nth % 2 === 0 ? 'AAAA' : 'A',
    reply: { rcode: RCODE.SERVFAIL },
  }));
  const found = await findingOf('ND2018', [...others(20), ...flood]);
  assert.match(found?.fix.join(' ') ?? '', /DNS pod or a node cache/);
});

test('new names that cause no failures and are few among all queries are not reported', async () => {
  const few = many(() => ({ address: '198.51.100.7' }));
  const rest = Array.from({ length: 400 }, (_, i) => ({
    ...{ atMs: i * 20, name: `www${i % 7}.example.org.`, address: '192.0.2.9' },
  }));
  assert.equal(await findingOf('ND2018', [...rest, ...few]), undefined);
});

test('a limit that a flood exceeds comes first, and the flood is its trigger', async () => {
  // 55 replies in each second, however many queries there are.
  const packets = Array.from({ length: 24 }, (_, second) => {
    const count = second % 6 < 3 ? 20 : 160;
    return Array.from({ length: count }, (__, turn) => {
      const nth = second * 200 + turn;
      const ms = second * 1000 + (turn * 990) / count;
      const [client, name] =
        turn % 4 === 0
          ? ['10.244.1.7', `www${nth % 7}.example.org.`]
          : ['10.244.1.66', `${((nth + 1) * 0x9e3779b1).toString(36)}.shop.example.`];
      const way = ends(client, 20_000 + nth, '10.10.0.53');
      return asked(
        ms,
        way,
        name,
        nth + 1,
        (turn * 7) % count < 55 ? { rcode: 3 } : { tookMs: null },
      );
    }).flat();
  });
  const { findings } = await examine(inOrder(packets));
  assert.deepEqual(findings.map(({ code }) => code).slice(0, 2), ['ND4001', 'ND2018']);
  assert.match(findings[0]!.seen.join(' '), /10\.244\.1\.66.*shop\.example\./);
});
