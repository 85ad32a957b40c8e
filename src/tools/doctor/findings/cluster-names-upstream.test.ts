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
const denied = (server: string, client?: string): Given[] =>
  Array.from({ length: 10 }, (_, i) => ({
    ...{ atMs: i * 1000, name: 'orders.shop.svc.cluster.local.', server },
    ...(client === undefined ? {} : { client }),
    reply: { rcode: RCODE.NXDOMAIN, authority: [root] },
  }));

test('a node cache that denies cluster names with the root’s SOA has no zone for them', async () => {
  const cache = '169.254.20.10';
  const found = await findingOf('ND4048', [...denied(cache), ...others(20)]);
  assert.match(found?.seen.join(' ') ?? '', /answered by 169\.254\.20\.10, a link-local address/);
  const codes = ['ND2007', 'ND2010'];
  for (const code of codes)
    assert.equal(await findingOf(code, [...denied(cache), ...others(20)]), undefined);
});

test('a server that forwards cluster names is reported with its upstream', async () => {
  const all = [...denied('10.244.3.2'), ...denied('169.254.169.253', '10.244.3.2'), ...others(20)];
  const found = await findingOf('ND4048', all);
  assert.match(found?.seen.join(' ') ?? '', /10\.244\.3\.2 sends them to 169\.254\.169\.253/);
});

test('a pod that queries the cloud’s resolver directly is not a forwarder', async () => {
  assert.equal(await findingOf('ND4048', [...denied('169.254.169.253'), ...others(20)]), undefined);
});

test('a server that finds names of another cluster domain lacks no zone: the search path is wrong', async () => {
  const server = '10.244.3.2';
  const wrong = ['shop.svc.cluster.local.', 'svc.cluster.local.', 'cluster.local.', ''];
  const walks = Array.from({ length: 20 }, (_, i): Given[] => {
    const short = i % 2 === 0 ? 'orders.' : 'mail.';
    const base = { server, client: '10.244.1.30' };
    return [
      ...['shop.svc.k8s.corp.', 'svc.k8s.corp.'].map((domain, at) => ({
        ...{ ...base, client: '10.244.1.31', atMs: i * 1000 + at, name: `${short}shop.${domain}` },
        ...(at === 0 ? { reply: { rcode: RCODE.NXDOMAIN } } : { address: '10.96.3.3' }),
      })),
      ...wrong.map((domain, at) => ({
        ...{ ...base, atMs: i * 1000 + 300 + at, name: `${short}${domain}` },
        reply: { rcode: RCODE.NXDOMAIN, authority: [root] },
      })),
    ];
  }).flat();
  const forwarded = denied('169.254.169.253', server);
  const all = [...walks, ...forwarded, ...others(20)].toSorted(
    (one, other) => one.atMs - other.atMs,
  );
  assert.equal(await findingOf('ND4048', all), undefined);
});
