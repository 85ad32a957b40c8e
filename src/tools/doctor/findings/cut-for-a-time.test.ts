import assert from 'node:assert/strict';
import { test } from 'node:test';
import { back, TCP, tcpPacket, type Captured } from '../../../../test/kit/packets.ts';
import { asked, at, ends, inOrder } from '../../../../test/kit/story-parts.ts';
import { examine } from '../../../../test/kit/story.ts';

const CUT = ['10.244.1.14', '10.244.1.31'] as const;
const FINE = '10.244.3.8';
const PODS = ['10.244.2.5', '10.244.0.3'] as const;

/** Queries of three clients on a node. @param isLost whether a client's query is dropped before the translation */
const traffic = (isLost: (client: string, ms: number, nth: number) => boolean): Captured[][] =>
  Array.from({ length: 120 }, (_, nth) => {
    const [client, ms, port] = [[...CUT, FINE][nth % 3]!, nth * 500, 20_000 + nth];
    const name = `n${nth % 7}.shop.svc.cluster.local.`;
    if (isLost(client, ms, nth)) return asked(ms, ends(client, port), name, port, { tookMs: null });
    const [query, reply] = asked(ms, ends(client, port), name, port, { tookMs: 1 });
    return [
      query!,
      ...asked(ms + 0.1, ends(client, port, PODS[nth % 2]), name, port, { tookMs: 0.5 }),
      reply!,
    ];
  });

/** Connections that are accepted. */
const database = (client: string): Captured[] =>
  Array.from({ length: 20 }, (_, nth) => {
    const way = { from: client, fromPort: 41_000 + nth, to: '10.244.4.12', toPort: 5432 };
    return [
      at(nth * 2500, tcpPacket(way, 1, TCP.SYN)),
      at(nth * 2500 + 1, tcpPacket(back(way), 1, TCP.SYN | TCP.ACK)),
    ];
  }).flat();

const findings = async (packets: readonly (readonly Captured[])[]) =>
  (await examine(inOrder(packets))).findings;

test('two clients that lose everything until some time, while another loses nothing, were cut off by a rule', async () => {
  const isLost = (client: string, ms: number): boolean => client !== FINE && ms < 33_000;
  const [first] = await findings([...traffic(isLost), database(CUT[0])]);
  assert.equal(first?.code, 'ND3004');
  const seen = first.seen.join(' ');
  assert.match(seen, /only before 10.96.0.10 was translated/);
  assert.match(seen, /other connections from .* were accepted/);
  assert.match(seen, /fixed at that time/);
});

test('a rule that begins in the middle is reported as well', async () => {
  const [first] = await findings(traffic((client, ms) => client !== FINE && ms > 30_000));
  assert.equal(first?.code, 'ND3004');
  assert.match(first.seen.join(' '), /something changed at that time/);
});

test('losses that all clients share are not a rule about some of them', async () => {
  for (const isLost of [
    (_: string, ms: number) => ms < 33_000 && ms > 5000,
    (_: string, ms: number, nth: number) => ms < 33_000 && nth % 7 === 0,
  ])
    assert.ok(!(await findings(traffic(isLost))).some(({ code }) => code === 'ND3004'));
});

test('a single client’s capture leaves open whether a rule or the DNS pods are at fault', async () => {
  const alone = traffic((_, ms) => ms < 33_000).map((packets, nth) =>
    nth % 3 === 0 ? packets : [],
  );
  const [first] = await findings([...alone, database(CUT[0])]);
  assert.equal(first?.code, 'ND3007');
  assert.match(first.title, /although its other connections worked/);
  assert.match(first.why, /NetworkPolicy/);
});
