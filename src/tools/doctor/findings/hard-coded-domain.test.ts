import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE } from '../../../server/wire/iana.ts';
import { given, others, type Given } from '../../../../test/kit/given-answers.ts';
import { examine } from '../../../../test/kit/story.ts';

const SERVER = '10.96.0.10';
const DOMAIN = 'k8s.acme.internal.';
const steps = [`shop.svc.${DOMAIN}`, `svc.${DOMAIN}`, DOMAIN, ''];

/** Lookups that try each step of the search path. @param found the step at which the name exists */
function lookups(name: string, found: number | null, fromMs: number): Given[] {
  return Array.from({ length: 8 }, (_, nth) => nth).flatMap((nth) =>
    steps.slice(0, found === null ? undefined : found + 1).map((step, at): Given => {
      const each = { atMs: fromMs + nth * 1000 + at, name: name + step, server: SERVER };
      return at === found
        ? { ...each, address: '10.96.7.1' }
        : { ...each, reply: { rcode: RCODE.NXDOMAIN } };
    }),
  );
}

const findings = async (all: readonly Given[]) => (await examine(given(all))).findings;

test('names under cluster.local in a cluster with another domain are written wrong', async () => {
  const [first] = await findings([
    ...others(20),
    ...lookups('cart.', 0, 0),
    ...lookups('redis.data.', 1, 300),
    ...lookups('redis.data.svc.cluster.local.', null, 600),
  ]);
  assert.equal(first?.code, 'ND2010');
  assert.match(
    first.title,
    /under cluster\.local\., but this cluster’s domain is k8s\.acme\.internal/,
  );
  assert.match(first.seen.join(' '), /such as redis\.data\.svc\.k8s\.acme\.internal/);
  assert.match(first.fix[0]!, /without the domain \(redis\.data\)/);
});

test('a cluster whose second domain works, or a server that has no name of the cluster, is not', async () => {
  const second = [
    ...lookups('redis.data.svc.cluster.local.', 3, 600),
    ...lookups('x.data.svc.cluster.local.', null, 700),
  ];
  const titles = async (all: readonly Given[]) =>
    (await findings(all)).map(({ title }) => title).join(' ');
  assert.doesNotMatch(
    await titles([...others(20), ...lookups('cart.', 0, 0), ...second]),
    /Programs write/,
  );
  const elsewhere = lookups('redis.data.svc.cluster.local.', null, 600).map((each) => ({
    ...each,
    ...{ server: '10.0.0.2', client: '10.244.1.8' },
  }));
  assert.doesNotMatch(
    await titles([...others(20), ...lookups('cart.', 0, 0), ...elsewhere]),
    /Programs write/,
  );
});

test('a search that appends a cloud’s domain to names of this cluster is not', async () => {
  const walk = ['ec2.internal.', 'c.project.internal.'].flatMap((domain, at) =>
    lookups(`redis.data.svc.${DOMAIN}${domain}`, null, 600 + 100 * at),
  );
  const all = [...others(20), ...lookups('cart.', 0, 0), ...lookups('redis.data.', 1, 300)];
  const codes = (await findings([...all, ...walk])).map(({ code }) => code);
  assert.ok(!codes.includes('ND2010'), codes.join(' '));
});
