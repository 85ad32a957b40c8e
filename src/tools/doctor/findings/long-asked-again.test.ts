import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  addressRecord,
  back,
  dnsMessage,
  udpPacket,
  type Captured,
} from '../../../../test/kit/packets.ts';
import { examine } from '../../../../test/kit/story.ts';
import { asked, at, ends, inOrder } from '../../../../test/kit/story-parts.ts';

const POD = '10.244.2.10';

/** A question of 90 addresses, and its reply of more than 1400 bytes. */
function large(
  atMs: number,
  port: number,
  id: number,
  name = 'big.example.com.',
  from = '10.244.1.5',
): Captured[] {
  const way = ends(from, port, POD);
  const edns = { udpSize: 4096, version: 0, dnssecOk: false, options: [] };
  const answer = Array.from({ length: 90 }, (_, i) => addressRecord(name, `192.0.2.${i + 1}`));
  return [
    at(atMs, udpPacket(way, dnsMessage(name, 'A', { id, edns }), port)),
    at(atMs + 1, udpPacket(back(way), dnsMessage(name, 'A', { id, reply: true, answer }), id)),
  ];
}

/** At a DNS pod: all is answered. @param again which questions are asked again after 3 s */
async function first(again: { readonly large: boolean; readonly small: boolean }) {
  const packets = Array.from({ length: 60 }, (_, i) => {
    const [atMs, id] = [i * 500, 1000 + i * 37];
    const small = (ms: number, port: number): Captured[] =>
      asked(ms, ends('10.244.1.5', port, POD), `n${i}.example.com.`, id);
    return [
      ...small(atMs, 20_000 + i),
      ...(again.small && i % 4 === 0 ? small(atMs + 3000, 21_000 + i) : []),
      ...(i % 5 === 0 ? large(atMs + 20, 22_000 + i, id) : []),
      ...(i % 10 === 0 && again.large ? large(atMs + 3020, 23_000 + i, id) : []),
    ];
  });
  const { findings } = await examine(inOrder(packets));
  return findings.map(({ code }) => code);
}

test('only questions with large replies are asked again', async () => {
  assert.equal((await first({ large: true, small: false }))[0], 'ND3012');
});

test('small ones are asked again as well: it is not the size', async () => {
  assert.ok(!(await first({ large: true, small: true })).includes('ND3012'));
});

test('large replies that are not asked again are well', async () => {
  assert.deepEqual(await first({ large: false, small: false }), []);
});

/** Two clients ask for large names and small ones in turn. @param tries of each large question, with new ids */
async function ofClients(tries: number, isForwarder: boolean) {
  const names = ['big.example.com.', 'large.example.net.'];
  const packets = names.flatMap((name, nth) =>
    Array.from({ length: 3 }, (_, round) =>
      Array.from({ length: tries }, (__, i) => {
        const port = 30_000 + nth * 100 + round * 10 + i;
        const from = `192.168.49.1${nth}`;
        const atMs = round * 20_000 + i * 2000 + nth * 300;
        return [
          ...large(atMs, port, port * 7, name, from),
          ...asked(atMs + 50, ends(from, port + 5000, POD), `n${port}.example.com.`, port),
          ...(isForwarder
            ? asked(atMs + 90, ends(from, port + 9000, POD), '.', port, { type: 'NS' })
            : []),
        ];
      }).flat(),
    ),
  );
  const { findings } = await examine(inOrder(packets));
  return findings.map(({ code }) => code);
}

test('a forwarder asks again with another id for large names alone', async () => {
  assert.equal((await ofClients(3, true))[0], 'ND3012');
  assert.deepEqual(await ofClients(1, true), []);
  // A program without a cache asks for names all the time.
  assert.deepEqual(await ofClients(3, false), []);
});

/** A program repeats questions with new ids. @param waitsMs until each repeat */
async function ofProgram(waitsMs: readonly number[]) {
  const packets = Array.from({ length: 60 }, (_, i) => {
    const waitMs = i % 10 === 0 ? waitsMs[i / 10] : undefined;
    const name = `key${i}.example.com.`;
    return [
      // Without a cache, it also queries small names again and again.
      ...asked(i * 500, ends('10.244.1.5', 20_000 + i, POD), `n${i % 7}.example.com.`, 1000 + i),
      ...(waitMs === undefined ? [] : large(i * 500 + 20, 22_000 + i, 2000 + i, name)),
      ...(waitMs === undefined ? [] : large(i * 500 + 20 + waitMs, 23_000 + i, 3000 + i, name)),
    ];
  });
  const { findings } = await examine(inOrder(packets));
  return findings.map(({ code }) => code);
}

test('a program repeats several large names with other ids, always after the same time: its time-out', async () => {
  assert.equal((await ofProgram([3013, 3022, 3014, 3018]))[0], 'ND3012');
  assert.ok(!(await ofProgram([3013, 4500, 900, 6200])).includes('ND3012'));
});
