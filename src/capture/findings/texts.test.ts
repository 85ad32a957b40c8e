import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseAddress } from '../../base/ip.ts';
import { dnsMessage, icmpError, ip, udpPacket, type Captured } from '../../../test/kit/packets.ts';
import { asked, at, ends, inOrder, names, pods } from '../../../test/kit/story-parts.ts';
import { everything } from '../part-diagnosis.ts';
import { healthy, look, play, examine } from '../../../test/kit/story.ts';
import { whoOf } from '../who.ts';
import type { Finding } from './finding.ts';

/** What a finding says has to be true of the packets, and of use to who reads it. */

const SERVICE = 'fd00:96::a';
const NEIGHBOUR = 'fd00:77::2';

async function first(packets: readonly Captured[]): Promise<Finding> {
  const { findings } = await examine(packets);
  assert.ok(findings[0] !== undefined);
  return findings[0];
}

/** A neighbour solicitation (RFC 4861). */
function solicitation(target: string): Uint8Array {
  const address = parseAddress(target)!;
  return ip(
    { from: 'fd00:77::1', to: 'ff02::1:ff00:2' },
    58,
    Uint8Array.from([135, 0, 0, 0, 0, 0, 0, 0, ...address]),
  );
}

describe('what findings say', () => {
  test('a neighbour that is gone is the one that is asked for in vain, and not the service that is translated to it', async () => {
    const packets = Array.from({ length: 16 }, (_, i): Captured[] => {
      const query = udpPacket(
        ends('fd00:42::7', 30_000 + i, SERVICE),
        dnsMessage('db.', 'A', { id: i }),
        5,
      );
      return [
        at(i * 900, query),
        at(i * 900 + 1, solicitation(NEIGHBOUR)),
        at(i * 900 + 3, icmpError('fd00:77::1', query, 1, 3, 'fd00:42::7')),
      ];
    });
    const { code, seen, fix, prove } = await first(inOrder(packets));
    assert.equal(code, 'ND3015');
    assert.match(seen[0]!, new RegExp(`^${NEIGHBOUR}: asked for on the local network .* 16 times`));
    assert.match(seen[1]!, new RegExp(`^${SERVICE}: what was sent there came back`));
    assert.match(fix[0]!, new RegExp(NEIGHBOUR));
    assert.match(prove, new RegExp(`ip neigh show ${NEIGHBOUR};`));
  });

  test('whom it hits are programs, and not the DNS pod that asks upstream for them', async () => {
    const packets = inOrder(
      Array.from({ length: 60 }, (_, i) => {
        const name = `${names[i % 2]!}.`;
        return [
          ...asked(i * 200, ends('10.244.1.7', 31_000 + i, '10.244.3.2'), name, 300 + i, {
            rcode: 5,
            tookMs: 2,
          }),
          ...asked(i * 200 + 0.5, ends('10.244.3.2', 33_000 + i, '192.0.2.53'), name, 400 + i, {
            rcode: 5,
          }),
          ...asked(
            i * 200 + 90,
            ends('10.244.1.7', 35_000 + i, '10.244.3.2'),
            'db.shop.svc.cluster.local.',
            700 + i,
          ),
        ];
      }),
    );
    const finding = await first(packets);
    assert.equal(finding.code, 'ND4010');
    assert.match(
      finding.seen[0]!,
      /^60 of 120 \(50 %\) queries were REFUSED, most by 192\.0\.2\.53 \(60\)/,
    );
    assert.match(finding.seen[1]!, /^10\.244\.1\.7 got it/);
    const [observed] = look(packets, [], [everything]);
    assert.deepEqual(
      whoOf(finding, observed!, new Map()).groups.map(({ name }) => name),
      ['10.244.1.7'],
    );
  });

  test('a silence lasts until the next reply, and not until the last query of those who wait', async () => {
    const packets = await play(pods('glibc', 4, { lookups: 40, everyMs: 500 }), (passing) =>
      passing.atMs > 6000 && passing.atMs < 12_000 ? { lost: true } : healthy(passing),
    );
    const { code, seen } = await first(packets);
    assert.equal(code, 'ND3007');
    const [, at = '', seconds = ''] =
      /next reply comes at 03:07:(\d+), (\d)\.0 s later/.exec(seen.join(' ')) ?? [];
    assert.ok(Number(at) >= 11 && Number(at) <= 12, seen.join(' '));
    assert.ok(Number(seconds) >= 5, seen.join(' '));
  });

  test('of a pod that stopped it is said what became of queries since then', async () => {
    const packets = await play(pods('glibc', 5, { lookups: 30, everyMs: 600 }), (passing) => {
      const pod = (passing.port + passing.client.length) % 3;
      const fate = { ...healthy(passing), behind: `10.244.9.${pod + 1}` };
      return pod === 1 && passing.atMs > 9000 ? { ...fate, lost: true } : fate;
    });
    const { code, seen } = await first(packets);
    assert.equal(code, 'ND3008');
    const [, lost, all] =
      /answered until 03:07:0\d\. Since then, of queries that were taken there (\d+) of (\d+) /.exec(
        seen[0]!,
      ) ?? [];
    assert.equal(lost, all, seen[0]!);
  });
});
