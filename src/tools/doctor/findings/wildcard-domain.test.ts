import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findingOf, others, type Given } from '../../../../test/kit/given-answers.ts';

const foreign = ['api.stripe.com.', 'hooks.slack.com.', 'api.github.com.', 'www.debian.org.'];
const upstream = { client: '10.244.1.3', server: '10.20.0.53' };

/** Answers of an upstream to DNS pods: only the last step of each walk reaches it. */
const atUpstream = (names: readonly string[], address: (nth: number) => string): Given[] =>
  names.flatMap((name, nth) =>
    Array.from({ length: 3 }, (_, i) => ({
      ...{ atMs: i * 5000 + nth * 300, name, address: address(nth), ...upstream },
    })),
  );

test('an upstream sees the wildcard by names with a registered name before a common domain', async () => {
  const names = foreign.map((name) => `${name}corp.acme.example.`);
  const found = await findingOf('ND2004', [
    ...others(10),
    // Pods without the search domain get the right address.
    ...atUpstream(foreign.slice(0, 2), (nth) => `198.51.100.${nth}`),
    ...atUpstream(names, () => '10.20.0.99'),
  ]);
  assert.equal(found?.severity, 'critical');
  assert.match(found.seen.join(' '), /same address 10\.20\.0\.99/);
  assert.match(found.why, /\*\.corp\.acme\.example\./);
});

test('hosts of one owner, other addresses, and names that are asked for as written are not a wildcard', async () => {
  for (const zones of [
    ['api.eu', 'www.us', 'db.asia', 'mail.af'],
    ['api.dev', 'www.dev', 'db.app', 'mail.net', 'web.net'],
  ])
    assert.equal(
      await findingOf(
        'ND2004',
        atUpstream(
          zones.map((name) => `${name}.acme.example.`),
          () => '10.20.0.99',
        ),
      ),
      undefined,
    );
  const names = foreign.map((name) => `${name}corp.acme.example.`);
  const differing = atUpstream(names, (nth) => `192.0.2.${nth}`);
  assert.equal(await findingOf('ND2004', differing), undefined);
  // A recursive resolver follows aliases to a network that delivers for many sites.
  const delivered = [
    ...atUpstream(foreign, () => '192.0.2.7'),
    ...atUpstream(
      foreign.map((name) => `${name}cdn.example.net.`),
      () => '192.0.2.7',
    ),
  ];
  assert.equal(await findingOf('ND2004', delivered), undefined);
});
