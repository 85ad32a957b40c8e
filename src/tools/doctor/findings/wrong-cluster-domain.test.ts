import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE } from '../../../server/wire/iana.ts';
import { soa } from '../../../../test/kit/content-stories.ts';
import { given, type Given } from '../../../../test/kit/given-answers.ts';
import { examine } from '../../../../test/kit/story.ts';
import type { Finding } from './finding.ts';

const root = {
  ...soa('example.'),
  name: '.',
  data: { ...soa('example.').data, mname: 'a.root-servers.net.' },
};

/** The first finding for a pod whose short names are all denied. @param server the only one that it queries */
async function firstOf(server: string, domain: string): Promise<Finding | undefined> {
  const path = [`shop.svc.${domain}`, `svc.${domain}`, domain, ''];
  const typed = ['cart', 'orders.shop', 'redis.cache', 'mail'];
  const walks = Array.from({ length: 96 }, (_, i): Given => ({
    ...{ atMs: (i >> 2) * 400 + (i % 4) * 2, server },
    name: `${typed[(i >> 2) % 4]!}.${path[i % 4]!}`,
    reply: { rcode: RCODE.NXDOMAIN, authority: [root] },
  }));
  const found = Array.from({ length: 12 }, (_, i): Given => ({
    ...{ atMs: i * 800 + 100, server, name: 'www.example.com.', address: '192.0.2.80' },
  }));
  return (await examine(given([...walks, ...found]))).findings[0];
}

test('a pod that queries a resolver outside the cluster has the wrong server, not the wrong domain', async () => {
  for (const server of ['8.8.8.8', '168.63.129.16', '169.254.169.253'])
    for (const domain of ['cluster.local.', 'k8s.corp.'])
      assert.equal((await firstOf(server, domain))?.code, 'ND2007', `${server} ${domain}`);
});

test('with a private server that denies the default domain, either may be wrong', async () => {
  const first = await firstOf('10.96.0.10', 'cluster.local.');
  assert.equal(first?.code, 'ND2010');
  assert.ok(first.confidence <= 0.75);
  assert.match(first.why, /Or 10\.96\.0\.10 is not the cluster’s DNS/);
  const other = await firstOf('10.96.0.10', 'k8s.corp.');
  assert.equal(other?.code, 'ND2010');
  assert.doesNotMatch(other.why, /is not the cluster’s DNS/);
});
