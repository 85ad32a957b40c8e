import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LINK } from './read/packets/frame.ts';
import { Reading } from './read/reading.ts';
import { QuerySample, sameTraffic } from './same-traffic.ts';
import { pcapFile, type Captured } from '../../../test/kit/packets.ts';
import { healthy, play } from '../../../test/kit/story.ts';
import { pods } from '../../../test/kit/story-parts.ts';
import type { Input } from './read/recognised-input.ts';

function input(packets: readonly Captured[]): Input {
  const bytes = pcapFile(LINK.RAW, packets);
  const chunks = async function* (): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += 1000) yield bytes.subarray(at, at + 1000);
  };
  return {
    ...{ name: 'memory', format: 'pcap', size: bytes.length, chunks: chunks() },
    taken: () => 0,
    close: () => undefined,
  };
}

/** The same packets one router further along, on a host whose clock is ahead. */
function further(packets: readonly Captured[], aheadMs: number): Captured[] {
  return packets.map(({ timeMs, bytes }) => {
    const copy = Uint8Array.from(bytes);
    const isQuery = copy[16] === 10 && copy[17] === 96;
    copy[8] = copy[8]! + (isQuery ? -1 : 1);
    return { timeMs: timeMs + (isQuery ? 0.1 : -0.1) + aheadMs, bytes: copy };
  });
}

async function sampleOf(packets: readonly Captured[]): Promise<QuerySample> {
  const sample = new QuerySample();
  await new Reading({ message: (message) => sample.add(message) }).readWhole(input(packets));
  return sample;
}

/** The number of exchanges, and how many were not answered. */
async function counted(
  captures: readonly (readonly Captured[])[],
): Promise<{ readonly exchanges: number; readonly lost: number }> {
  const samples = await Promise.all(captures.map(sampleOf));
  const [group, ...others] = sameTraffic(samples);
  assert.equal(others.length, 0, 'all captures have the same packets');
  const reading = new Reading({});
  await reading.readTogether(
    group!.map(({ at, aheadMs }) => ({ input: input(captures[at]!), aheadMs })),
  );
  reading.end();
  const { exchanges, lost } = reading.totals;
  return { exchanges, lost };
}

const packets = await play(pods('glibc', 4, { lookups: 8 }), healthy, { seed: 3 });
const alone = new Reading({});
await alone.readWhole(input(packets));

describe('captures of the same traffic', () => {
  for (const aheadMs of [0, 3, -3, 700, -5000, 3_600_000])
    it(`count each query once where one clock is ${aheadMs} ms ahead`, async () => {
      const { exchanges } = alone.totals;
      assert.deepEqual(await counted([packets, further(packets, aheadMs)]), { exchanges, lost: 0 });
      assert.deepEqual(await counted([further(packets, aheadMs), packets]), { exchanges, lost: 0 });
    });

  it('add what only one of them has', async () => {
    const half = packets.slice(0, packets.length / 2);
    const { exchanges } = alone.totals;
    assert.equal((await counted([half, further(packets, 40)])).exchanges, exchanges);
  });

  it('are recognised among captures of other traffic', async () => {
    const other = await play(pods('glibc', 4, { lookups: 8, from: 60 }), healthy, { seed: 4 });
    const groups = sameTraffic([await sampleOf(packets), await sampleOf(other)]);
    assert.equal(groups.length, 2);
  });
});
