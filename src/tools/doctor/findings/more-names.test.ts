import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE } from '../../../server/wire/iana.ts';
import { soa } from '../../../../test/kit/content-stories.ts';
import { findingOf, others, type Given } from '../../../../test/kit/given-answers.ts';

const root = {
  ...soa('example.'),
  name: '.',
  data: { ...soa('example.').data, mname: 'a.root-servers.net.' },
};
const often = (count: number, everyMs: number, of: (nth: number) => Partial<Given>): Given[] =>
  Array.from({ length: count }, (_, nth) => ({
    ...{ atMs: nth * everyMs, name: 'api.pay.example.', ...of(nth) },
  }));

test('a private domain that the root denies needs a stub zone', async () => {
  const denied = { rcode: RCODE.NXDOMAIN, authority: [root] };
  const all = often(8, 900, () => ({ name: 'crm.acme.local.', reply: denied }));
  const found = await findingOf('ND2008', [...others(20), ...all]);
  assert.match(found?.title ?? '', /a stub zone is missing/);
  assert.match(found!.fix[0]!, /acme\.local:53/);
  // Only the name as written exists, at the company’s name servers.
  assert.match(found!.prove, /query crm\.acme\.local\. @COMPANY-DNS/);
});

test('a name that the root denies is forwarded to the server that has it', async () => {
  const name = 'git.corp.acme.';
  const denied = { rcode: RCODE.NXDOMAIN, authority: [root] };
  const found = await findingOf('ND4034', [
    ...others(20),
    ...often(8, 900, () => ({ name, server: '10.0.0.8', reply: denied })),
    ...often(8, 910, () => ({ name, client: '10.0.7.7', server: '10.0.0.5', address: '10.9.0.4' })),
  ]);
  assert.match(found!.seen.join(' '), /the root’s SOA record/);
  assert.equal(found!.fix.length, 1);
  assert.match(found!.fix[0]!, /^Forward the domain of these names to 10\.0\.0\.5/);
});

test('an address, an underscore or a variable in a name is reported', async () => {
  const denied = { rcode: RCODE.NXDOMAIN, authority: [soa('cluster.local.')] };
  for (const [name, title] of [
    ['10.96.3.4.', /looks up an IP address/],
    ['my_db.shop.svc.cluster.local.', /names that do not exist/],
    ['\\${db}.shop.svc.cluster.local.', /a stray character/],
  ] as const) {
    const all = often(8, 900, () => ({ name, reply: denied }));
    assert.match((await findingOf('ND2008', [...others(20), ...all]))?.title ?? '', title);
  }
});

test('a program that looks up one name for each request is reported, while several clients are not', async () => {
  const one = often(400, 25, () => ({ address: '192.0.2.4', ttl: 300, client: '10.244.1.66' }));
  const found = await findingOf('ND2021', [...others(20), ...one]);
  assert.equal(found?.severity, 'info');
  assert.match(found.seen[0]!, /10\.244\.1\.66 queried api\.pay\.example\. A 400 times/);
  const busy = often(4000, 3, () => ({ address: '192.0.2.4', ttl: 300, client: '10.244.1.66' }));
  assert.equal((await findingOf('ND2021', [...others(20), ...busy]))?.severity, 'info');
  const many = one.map((each, nth) => ({ ...each, client: `10.244.1.${nth % 9}` }));
  assert.equal(await findingOf('ND2021', [...others(20), ...many]), undefined);
});

test('a repeated lookup that the search path multiplies is a warning, even if all are answered', async () => {
  const path = ['shop.svc.cluster.local.', 'svc.cluster.local.', 'cluster.local.', ''];
  const lookups = (stem: string, count: number): Given[] =>
    Array.from({ length: count }, (_, nth) =>
      path.map((domain, at): Given => ({
        ...{ atMs: nth * 20 + at * 2, client: '10.244.1.66', name: `${stem}.${domain}` },
        ...(domain === ''
          ? { address: '192.0.2.4', ttl: 30 }
          : { reply: { rcode: RCODE.NXDOMAIN, authority: [soa('cluster.local.')] } }),
      })),
    ).flat();
  const found = await findingOf('ND2021', [...others(20), ...lookups('api.pay.example', 1000)]);
  assert.equal(found?.severity, 'warning');
  assert.match(found.seen.join(' '), /makes 4 queries of each, 200 a second/);
});

test('pods without IPv4 need DNS64, while pods that also query A do not', async () => {
  const pod = { client: '2001:db8::7', server: 'fd00::a' };
  const empty = often(30, 300, (nth) => ({
    ...{ ...pod, name: `www${nth % 4}.example.com.`, type: 'AAAA' },
    reply: { authority: [soa('example.com.')] },
  }));
  assert.match((await findingOf('ND8011', empty))?.seen[0] ?? '', /2001:db8::7 queried only AAAA/);
  const dual = empty.map((each): Given => ({
    ...{ ...each, type: 'A', atMs: each.atMs + 1, address: '192.0.2.1', reply: {} },
  }));
  assert.equal(await findingOf('ND8011', [...empty, ...dual]), undefined);
});
