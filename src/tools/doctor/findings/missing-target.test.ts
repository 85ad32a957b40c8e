import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE, TYPE } from '../../../server/wire/iana.ts';
import { soa } from '../../../../test/kit/content-stories.ts';
import { findingOf, others, type Given } from '../../../../test/kit/given-answers.ts';

const domain = 'rs0.db.svc.cluster.local.';
const owner = `_mongodb._tcp.${domain}`;
const hosts = [0, 1, 2].map((nth) => `mongo-${nth}.${domain}`);

/** A driver that queries the members, and the address of each. @param missing those that do not exist */
const refreshes = (missing: readonly string[]): Given[] =>
  Array.from({ length: 5 }, (_, nth) => [
    {
      ...{ atMs: nth * 2000, name: owner, type: 'SRV' as const },
      reply: {
        answer: hosts.map((target) => ({
          ...{ name: owner, type: TYPE.SRV, class: 1, ttl: 5 },
          data: { priority: 0, weight: 33, port: 27_017, target },
        })),
      },
    },
    ...hosts.map((name, at): Given => {
      const query = { atMs: nth * 2000 + 5 + at, name };
      return missing.includes(name)
        ? { ...query, reply: { rcode: RCODE.NXDOMAIN, authority: [soa('cluster.local.')] } }
        : { ...query, address: `10.244.3.${at}` };
    }),
  ]).flat();

test('the target of an SRV record that does not exist is named with the record', async () => {
  const found = await findingOf('ND4058', [...others(20), ...refreshes([hosts[2]!])]);
  assert.equal(found?.severity, 'warning');
  assert.match(found.title, /^An SRV record points to a host/);
  assert.ok(found.seen[0]!.includes(owner) && found.seen[0]!.includes(hosts[2]!));
  assert.match(found.seen.join(' '), /mongo-0\./);
  const none = await findingOf('ND4058', [...others(20), ...refreshes(hosts)]);
  assert.equal(none?.severity, 'critical');
  assert.equal(await findingOf('ND4058', [...others(20), ...refreshes([])]), undefined);
});
