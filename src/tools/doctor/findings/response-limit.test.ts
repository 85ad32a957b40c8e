import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FLAG } from '../../../server/wire/iana.ts';
import { back, dnsMessage, udpPacket, type Captured } from '../../../../test/kit/packets.ts';
import { examine } from '../../../../test/kit/story.ts';
import { asked, at, ends, inOrder } from '../../../../test/kit/story-parts.ts';

const [RESOLVER, SERVER] = ['10.0.1.11', '203.0.113.53'];

/** A query, and an empty reply with TC. */
function slipped(atMs: number, i: number, name: string): Captured[] {
  const way = ends(RESOLVER, 20_000 + i, SERVER);
  const flags = FLAG.QR | FLAG.TC;
  return [
    at(atMs, udpPacket(way, dnsMessage(name, 'A', { id: i }), i + 1)),
    at(atMs + 0.5, udpPacket(back(way), dnsMessage(name, 'A', { id: i, flags }), i + 2)),
  ];
}

/** Queries at the authoritative server, in each second as many as `rateOf` says. */
async function codes(rateOf: (second: number) => number, slips: boolean, losesAt: number) {
  let i = 0;
  const packets = Array.from({ length: 30 }, (_, second) =>
    Array.from({ length: rateOf(second) }, (__, turn) => {
      const ms = second * 1000 + (turn * 990) / rateOf(second);
      const name = `t${turn % 20}.tenant.example.`;
      i++;
      const isOver = rateOf(second) >= losesAt && (i * 7919) % 11 > 5;
      if (isOver && slips && (i * 7919) % 11 > 8) return slipped(ms, i, name);
      const tookMs = isOver ? null : 0.4;
      return asked(ms, ends(RESOLVER, 20_000 + i, SERVER), name, i, { tookMs });
    }).flat(),
  );
  const { findings } = await examine(inOrder(packets));
  return findings.map(({ code }) => code);
}

const inBursts = (second: number): number => (second % 6 === 3 ? 60 : 3);

test('losses and empty truncated replies above a rate are a limit of the server', async () => {
  assert.equal((await codes(inBursts, true, 50))[0], 'ND4045');
});

test('losses without truncated replies, or at any rate, have another cause', async () => {
  assert.ok(!(await codes(inBursts, false, 50)).includes('ND4045'));
  assert.ok(!(await codes(() => 12, true, 1)).includes('ND4045'));
});

/** Each second has the same number of queries, in one burst; those behind the first few, or any, are dropped. */
async function steadily(isOver: (turn: number, i: number) => boolean): Promise<readonly string[]> {
  let i = 0;
  const packets = Array.from({ length: 20 }, (_, second) =>
    Array.from({ length: 20 }, (__, turn) => {
      const ms = second * 1000 + turn * 20;
      i++;
      const name = `t${(i * 7) % 19}.tenant.example.`;
      const over = isOver(turn, i);
      if (over && turn % 4 === 0) return slipped(ms, i, name);
      const tookMs = over ? null : 0.4;
      return asked(ms, ends(RESOLVER, 20_000 + i, SERVER), name, i, { tookMs });
    }).flat(),
  );
  return (await examine(inOrder(packets))).findings.map(({ code }) => code);
}

test('where each second has losses, those at the end of its burst show the limit', async () => {
  assert.equal((await steadily((turn) => turn >= 9))[0], 'ND4045');
  assert.ok(!(await steadily((_, i) => (i * 7919) % 11 > 5)).includes('ND4045'));
});

test('where equal replies are limited, repeats of one question show the limit', async () => {
  // Each burst repeats two questions, among many that are queried once.
  const codesOf = async (
    isOver: (isHot: boolean, repeat: number, i: number) => boolean,
  ): Promise<string[]> => {
    let i = 0;
    const packets = Array.from({ length: 10 }, (_, burst) =>
      Array.from({ length: 24 }, (__, turn) => {
        const ms = burst * 2000 + turn * 12;
        i++;
        const isHot = turn % 3 !== 2 && turn % 8 !== 7;
        const name = isHot ? `hot${turn % 2}.tenant.example.` : `once${i}.tenant.example.`;
        const over = isOver(isHot, Math.floor(turn / 3), i);
        if (over && i % 2 === 0) return slipped(ms, i, name);
        const tookMs = over ? null : 0.4;
        return asked(ms, ends(RESOLVER, 20_000 + i, SERVER), name, i, { tookMs });
      }).flat(),
    );
    return (await examine(inOrder(packets))).findings.map(({ code }) => code);
  };
  assert.equal((await codesOf((isHot, repeat) => isHot && repeat >= 4))[0], 'ND4045');
  assert.ok(!(await codesOf((_, __, i) => (i * 7919) % 11 > 5)).includes('ND4045'));
});
