import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE } from '../../../server/wire/iana.ts';
import { soa } from '../../../../test/kit/content-stories.ts';
import { findingOf, given, others, type Given } from '../../../../test/kit/given-answers.ts';
import { examine, healthy, play } from '../../../../test/kit/story.ts';
import { asked, ends, inOrder, pods } from '../../../../test/kit/story-parts.ts';

const root = {
  ...soa('example.'),
  name: '.',
  data: { ...soa('example.').data, mname: 'a.root-servers.net.' },
};
const name = 'orders.shop.svc.cluster.local.';
const denied = (zone: string, server: string): Given[] =>
  Array.from({ length: 10 }, (_, i) => ({
    ...{ atMs: i * 1000, name, server },
    reply: { rcode: RCODE.NXDOMAIN, authority: [zone === '.' ? root : soa(zone)] },
  }));
const found: Given[] = Array.from({ length: 10 }, (_, i) => ({
  ...{ atMs: i * 1000 + 200, name, address: '10.96.1.1' },
}));

test('a server that denies cluster names in the name of the root does not know the cluster', async () => {
  const alone = await findingOf('ND2007', [...denied('.', '169.254.169.253'), ...others(10)]);
  assert.equal(alone?.severity, 'critical');
  assert.match(alone.why, /dnsPolicy Default/);
  const second = await findingOf('ND2007', [...denied('.', '8.8.8.8'), ...found]);
  assert.match(second!.title, /second name server/);
  assert.equal(await findingOf('ND8001', [...denied('.', '8.8.8.8'), ...found]), undefined);
});

test('a public resolver is not a DNS pod, whatever SOA record its denials carry', async () => {
  const all = [...denied('example.', '9.9.9.9'), ...found];
  const finding = await findingOf('ND2007', all);
  assert.match(finding?.title ?? '', /second name server/);
  assert.match(finding!.seen.join(' '), /9\.9\.9\.9 .* a public address/);
  assert.equal(await findingOf('ND8001', all), undefined);
  const replica = [...denied('cluster.local.', '10.244.2.28'), ...found];
  assert.equal(await findingOf('ND2007', replica), undefined);
  assert.ok(await findingOf('ND8001', replica));
});

test('a router that denies cluster names without a SOA record is not a DNS pod', async () => {
  const router = denied('.', '192.168.40.1').map((each) => ({
    ...each,
    reply: { rcode: RCODE.NXDOMAIN },
  }));
  const all = [...router, ...found];
  const finding = await findingOf('ND2007', all);
  assert.match(finding?.title ?? '', /second name server/);
  assert.match(finding!.seen.join(' '), /lack the SOA record/);
  assert.equal(await findingOf('ND8001', all), undefined);
});

test('a second name server is found on a node, where DNS pods answer behind their Service’s address', async () => {
  const all = [...denied('.', '8.8.8.8'), ...found];
  const behind = found.map(({ atMs, address }, i) =>
    asked(atMs + 0.05, ends('10.244.1.7', 20_010 + i, '10.244.2.28'), name, 11 + i, {
      ...{ address: address!, tookMs: 0.5 },
    }),
  );
  const { findings } = await examine(inOrder([given(all), ...behind]));
  assert.equal(findings[0]?.code, 'ND2007');
  assert.match(findings[0].seen.join(' '), /10\.244\.1\.7 also queries 10\.96\.0\.10, which knows/);
});

test('a server that denies them in the name of the cluster is not reported', async () => {
  const own = [...denied('cluster.local.', '10.96.0.10'), ...others(10)];
  assert.equal(await findingOf('ND2007', own), undefined);
});

test('an upstream that DNS pods ask for external names only is not a cluster with another domain', async () => {
  const path = ['shop.svc.cluster.local.', 'svc.cluster.local.', 'cluster.local.', ''];
  const typed = ['web', 'cart', 'web.shop', 'orders'];
  const walks = Array.from({ length: 48 }, (_, i): Given => ({
    ...{ atMs: (i >> 2) * 400 + (i % 4) * 2, client: '172.18.0.2', server: '192.0.2.53' },
    name: `${typed[(i >> 2) % 4]!}.${path[i % 4]!}`,
    reply: { rcode: RCODE.NXDOMAIN, authority: [root] },
  }));
  const forwarded = Array.from({ length: 30 }, (_, i): Given => ({
    ...{ atMs: i * 150 + 1, client: '172.18.0.3', server: '192.0.2.53' },
    ...{ name: `www${i % 4}.example.com.`, address: '192.0.2.80' },
  }));
  const finding = await findingOf('ND2007', [...walks, ...forwarded]);
  assert.deepEqual(finding?.affected, ['172.18.0.2']);
  assert.equal(await findingOf('ND2010', [...walks, ...forwarded]), undefined);
});

test('a client that queries both servers at once, and finds at one what the other denies, has ND2007', async () => {
  const resolvConf =
    'nameserver 10.96.0.10\nnameserver 9.9.9.9\nsearch shop.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n';
  const packets = await play(
    pods('musl', 1, {
      lookups: 30,
      names: ['db.shop.svc.cluster.local', 'www.example.com'],
      resolvConf,
    }),
    (passing) =>
      passing.server === '9.9.9.9'
        ? { rcode: RCODE.NXDOMAIN, tookMs: 3 }
        : { ...healthy(passing), tookMs: 2 },
  );
  const codes = (await examine(packets)).findings.map(({ code }) => code);
  assert.equal(codes[0], 'ND2007');
  assert.ok(!codes.includes('ND8001'));
});
