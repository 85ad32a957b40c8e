import assert from 'node:assert/strict';
import { test } from 'node:test';
import { back, TCP, tcpPacket, type Captured, type Ends } from '../../../../test/kit/packets.ts';
import { examine } from '../../../../test/kit/story.ts';
import { asked, at, ends, inOrder } from '../../../../test/kit/story-parts.ts';
import type { Finding } from './finding.ts';

const CLIENT = '10.244.1.7';
const SEARCHED = ['shop.svc.cluster.local.', 'svc.cluster.local.', 'cluster.local.', ''];

/** Lookups with a search path whose steps take this long, and a TCP connection after each. */
function lookups(
  dnsMs: (i: number, step: number) => number,
  tcpMs: number | null,
): readonly Captured[] {
  return inOrder(
    Array.from({ length: 20 }, (_, i) => {
      let ms = i * 3000;
      const steps = SEARCHED.flatMap((domain, step) => {
        const name = `h${i % 5}.example.com.${domain}`;
        const took = dnsMs(i, step);
        const rcode = domain === '' ? 0 : 3;
        const way = ends(CLIENT, 30_000 + i * 4 + step);
        const exchange = asked(ms, way, name, i * 4 + step + 1, { tookMs: took, rcode });
        ms += took + 0.1;
        return exchange;
      });
      const way: Ends = { from: CLIENT, fromPort: 50_000 + i, to: '192.0.2.9', toPort: 443 };
      const connection =
        tcpMs === null
          ? []
          : [
              at(ms + 1, tcpPacket(way, i, TCP.SYN)),
              at(ms + 1 + tcpMs, tcpPacket(back(way), 1, TCP.SYN | TCP.ACK)),
            ];
      return [...steps, ...connection];
    }),
  );
}

const troubles = async (packets: readonly Captured[]): Promise<readonly Finding[]> => {
  const { findings } = await examine(packets);
  return findings.filter(({ severity }) => severity !== 'info');
};

test('replies that take as long as TCP handshakes show a slow path and not a slow server', async () => {
  const found = await troubles(lookups((i, step) => 260 + ((i * 7 + step * 5) % 20), 262));
  assert.deepEqual(
    found.map(({ code, severity }) => [code, severity]),
    [['ND3026', 'warning']],
  );
  assert.match(found[0]!.seen.join(' '), /TCP handshakes .* took 262 ms/);
});

test('equally late replies, without a handshake for comparison, leave path and server open', async () => {
  const [first, ...others] = await troubles(lookups((i, step) => 450 + ((i + step) % 20), null));
  assert.deepEqual([first!.code, first!.severity, others.length], ['ND4003', 'warning', 0]);
  assert.match(first!.title, /path or the server/);
});

test('a server that is late only for some names is slow, even if handshakes take long', async () => {
  const found = await troubles(lookups((_, step) => (step < 1 ? 0.5 : 900), 250));
  assert.ok(found.length > 0);
  for (const { code, title } of found) assert.doesNotMatch(`${code} ${title}`, /ND3026|path/);
});

test('equally late replies are compared with TCP handshakes that are quick elsewhere', async () => {
  const [first] = await troubles(lookups((i, step) => 460 + ((i + step) % 20), 0.4));
  assert.equal(first!.code, 'ND4003');
  assert.match(first!.seen[0]!, /TCP handshakes .* 0\.4 ms/);
});
