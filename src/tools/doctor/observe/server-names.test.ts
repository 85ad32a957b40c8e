/** Several name servers at one address, as two containers of a pod have it on their loopback. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asked } from '../../../../test/kit/story-parts.ts';
import type { Captured } from '../../../../test/kit/packets.ts';
import type { Diagnosis } from '../diagnosis.ts';
import { Examination } from '../examination.ts';
import { packetsOf } from '../../capture/written-packet.ts';
import { Reading } from '../../capture/read/reading.ts';
import type { Observations } from './observations.ts';

/** The observations of packets, with servers at these ports. */
function examined(
  packets: readonly Captured[],
  ports: readonly number[],
): Diagnosis & { readonly observed: Observations } {
  const examination = new Examination();
  const { domains, events } = examination;
  const reading = new Reading(events, ports, { domains });
  for (const { timeMs, bytes } of packets.toSorted((one, other) => one.timeMs - other.timeMs))
    reading.takeNetwork(bytes, 0, bytes.length, timeMs, 0);
  reading.end();
  examination.noteUnread(reading);
  return { ...examination.diagnosis(), observed: examination.observed[0]! };
}

const on = (fromPort: number, toPort: number, host = '127.0.0.1'): Parameters<typeof asked>[1] => ({
  ...{ from: host, fromPort, to: host, toPort },
});

/**
 * A server for programs on its own host forwards to a silent one at the same address, and probes it.
 */
const beside = (port: number, silent: number, host?: string): Captured[] =>
  [
    ...Array.from({ length: 25 }, (_, i) =>
      asked(i * 1000, on(30_000 + i, port, host), `n${i}.example.org.`, i + 1, {
        tookMs: 800,
        rcode: 2,
      }),
    ),
    ...Array.from({ length: 50 }, (_, i) =>
      asked(i * 500 + 10, on(40_000 + (i % 6), silent, host), `n${i >> 1}.example.org.`, 100 + i, {
        tookMs: null,
      }),
    ),
    ...Array.from({ length: 40 }, (_, i) =>
      asked(i * 600 + 20, on(50_000, silent, host), '.', 300 + i, { type: 'NS', tookMs: null }),
    ),
  ].flat();

for (const [what, port, silent, host] of [
  ['of the loopback', 1254, 2054, '127.0.0.1'],
  ['of the loopback, of which one is at 53', 53, 2054, '127.0.0.1'],
  ['of the loopback over IPv6', 1254, 2054, '::1'],
  ['of a pod', 53, 2054, '10.244.1.9'],
] as const)
  test(`two servers ${what}, one of them silent, do not form a loop: the silent one is down`, () => {
    const { findings, excluded, observed } = examined(beside(port, silent, host), [port, silent]);
    assert.deepEqual(
      findings.map(({ code }) => code),
      ['ND3005'],
      JSON.stringify(findings.map(({ code, seen }) => [code, seen])),
    );
    const name = host.includes(':') ? `[${host}]:${silent}` : `${host}:${silent}`;
    assert.match(findings[0]!.seen.join(' '), /^\d{2} queries from 1 DNS server went to /);
    assert.ok(findings[0]!.seen.join(' ').includes(`to ${name},`));
    assert.match(findings[0]!.why, /wait for nothing/);
    assert.equal(observed.servers.size, 2);
    // What the findings explain is not denied again.
    for (const { code, reason } of excluded) {
      assert.doesNotMatch(reason, /SERVFAIL is rare|^\(nearly\) all|0\.0 ms/, code);
    }
    const [frame] = packetsOf(findings[0]!.exchanges[0]!);
    assert.ok(frame!.bytes.length > 28, 'its packets have the address alone');
  });

test('a server at a port of its own that sends queries to itself is a circle', () => {
  const round = Array.from({ length: 40 }, (_, i) =>
    asked(i * 100, on(30_000 + i, 1253), `n${i >> 4}.example.org.`, i + 1, { tookMs: null }),
  ).flat();
  const { findings } = examined(round, [1253]);
  assert.equal(findings[0]?.code, 'ND4004');
  assert.match(findings[0].seen[0]!, /^127\.0\.0\.1 queries itself\.$/);
});

test('health checks of an upstream on the same host do not form a loop', () => {
  const checks = Array.from({ length: 40 }, (_, i) =>
    asked(i * 100, on(30_000, 53), '.', i + 1, { type: 'NS', tookMs: null }),
  ).flat();
  const { findings } = examined(checks, [53]);
  assert.ok(!findings.some(({ code }) => code === 'ND4004'));
});
