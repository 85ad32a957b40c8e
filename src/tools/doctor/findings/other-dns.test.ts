import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE } from '../../../server/wire/iana.ts';
import { given, others, type Given } from '../../../../test/kit/given-answers.ts';
import { examine } from '../../../../test/kit/story.ts';

/** Pods of the cluster's DNS, and one pod that stops at NXDOMAIN. @param server of the latter */
function pods(server: string): Given[] {
  const names = ['redis.data.', 'auth.platform.svc.'];
  const domains = ['svc.cluster.local.', 'cluster.local.'];
  return Array.from({ length: 12 }, (_, nth) => nth).flatMap((nth): Given[] => {
    const [name, domain] = [names[nth % 2]!, domains[nth % 2]!];
    const denied = { client: '10.244.2.11', server, reply: { rcode: RCODE.NXDOMAIN } };
    const isOurs = server === '10.96.0.10';
    return [
      {
        atMs: nth * 1000,
        name: name + domain,
        client: '10.244.2.12',
        server: '10.96.0.10',
        address: '10.96.7.1',
      },
      { ...denied, atMs: nth * 1000 + 300, name },
      ...(isOurs ? [] : [{ ...denied, atMs: nth * 1000 + 600, name: name + domain }]),
    ];
  });
}

const codes = async (all: readonly Given[]) =>
  (await examine(given([...others(20), ...all]))).findings.map(({ code }) => code);

test('a pod that queries the node’s resolver does not have ndots that is too low', async () => {
  const found = await codes(pods('10.0.0.2'));
  assert.equal(found[0], 'ND2007');
  assert.ok(!found.includes('ND2011'));
});

test('a pod that queries the cluster’s DNS for Service names as written has it', async () => {
  assert.ok((await codes(pods('10.96.0.10'))).includes('ND2011'));
});
