import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addressRecord, back, dnsMessage, udpPacket } from '../../../test/kit/packets.ts';
import { settledMemory } from '../../../test/kit/settled-memory.ts';
import { STORY_START } from '../../../test/kit/story.ts';
import { seededRandom } from '../../server/base/random.ts';
import { LiveModel } from './live-model.ts';

const CLIENTS = 10_000;
const HOURS = 24;
const HOUR_MS = 3_600_000;
/** Each client sends queries every fourth hour. */
const PER_HOUR = CLIENTS / 4;
const TICKS = 125;

test('a day with 10 000 clients: memory stays flat, and counts equal those of a full count', async () => {
  // Checking the rules takes milliseconds, and a day has 28 800 checks.
  const model = new LiveModel({ limits: { checkMs: 600_000 } });
  const input = model.open('a day');
  const random = seededRandom(7);
  const used: number[] = [];
  const heap: number[] = [];
  /** The times at which queries were sent in the last minutes, by client and name. */
  let recent: {
    readonly client: string;
    readonly name: string;
    readonly sentMs: number;
    readonly isLost: boolean;
  }[] = [];
  let all = 0;
  let worst = 0;
  const take = (packet: Uint8Array, timeMs: number): void =>
    input.reading.takeNetwork(packet, 0, packet.length, timeMs, 0);
  const compare = (nowMs: number): void => {
    const clients = model.view({ view: 'clients', most: 10_000 });
    const { fromMs } = clients.window;
    // The newest queries have not ended yet.
    const ended = recent.filter(
      ({ sentMs, isLost }) => sentMs >= fromMs && (!isLost || nowMs - sentMs >= 6000),
    );
    assert.equal(clients.error, 0);
    assert.equal(
      clients.rows.reduce((sum, row) => sum + row.queries, 0),
      ended.length,
    );
    assert.equal(
      clients.rows.reduce((sum, row) => sum + row.lost, 0),
      ended.filter(({ isLost }) => isLost).length,
    );
    assert.equal(clients.total, new Set(ended.map(({ client }) => client)).size);
    const names = model.view({ view: 'names', most: 10_000 });
    const full = Map.groupBy(ended, ({ name }) => name);
    for (const { name, lookups, error } of names.rows) {
      const truly = full.get(name)?.length ?? 0;
      assert.ok(lookups <= truly, `${name}: ${lookups} of ${truly}`);
      // Lookups from the last few seconds are still growing.
      const growing = full.get(name)?.filter(({ sentMs }) => nowMs - sentMs < 27_000).length ?? 0;
      assert.ok(lookups + error + growing >= truly, `${name}: ${lookups} + ${error} of ${truly}`);
      worst = Math.max(worst, error);
    }
  };
  for (let hour = 0; hour < HOURS; hour++) {
    for (let tick = 0; tick < TICKS; tick++) {
      const nowMs = STORY_START + hour * HOUR_MS + (tick * HOUR_MS) / TICKS;
      model.advance(nowMs);
      for (let each = 0; each < PER_HOUR / TICKS; each++) {
        const at = all % CLIENTS;
        const client = `10.${20 + (at >> 14)}.${(at >> 7) & 127}.${at & 127}`;
        // Half of all names are queried once.
        const name =
          random.integer(2) === 0
            ? `n${all}.example.com.`
            : `web${random.integer(20)}.shop.svc.cluster.local.`;
        const ends = {
          from: client,
          fromPort: 20_000 + random.integer(40_000),
          to: '10.96.0.10',
          toPort: 53,
        };
        const id = random.integer(65_536);
        const sentMs = nowMs + each;
        const isLost = random.integer(50) === 0;
        take(udpPacket(ends, dnsMessage(name, 'A', { id })), sentMs);
        const answer = [addressRecord(name, '192.0.2.1')];
        if (!isLost)
          take(
            udpPacket(back(ends), dnsMessage(name, 'A', { id, reply: true, answer })),
            sentMs + 0.4,
          );
        recent.push({ client, name, sentMs, isLost });
        all++;
      }
      model.advance(nowMs + 1000);
      if (tick === TICKS - 1) {
        recent = recent.filter(({ sentMs }) => sentMs > nowMs - 1_800_000);
        if (hour % 8 === 7) compare(nowMs + 1000);
      }
    }
    used.push(model.view({ view: 'now' }).memory.usedBytes);
    heap.push(await settledMemory());
  }
  const day = model.view({ view: 'now', lastMs: 24 * HOUR_MS });
  assert.ok(
    day.queries >= all - PER_HOUR / 20 && day.queries <= all,
    `${day.queries} of ${all} in a day`,
  );
  const flat = (list: readonly number[]): number =>
    Math.min(...list.slice(-4)) / Math.min(...list.slice(5, 9));
  assert.ok(flat(used) < 1.1, `used: ${used.join(' ')}`);
  assert.ok(flat(heap) < 1.15, `heap: ${heap.join(' ')}`);
  if (process.env['SHOW'] !== undefined) console.log(JSON.stringify({ used, heap }));
  console.log(
    JSON.stringify({
      all,
      worst,
      used: used.at(-1),
      heap: heap.map((bytes) => Math.round(bytes / 1e6)),
    }),
  );
});
