import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { systemClock } from '../../base/clock.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { seededRandom } from '../../base/random.ts';
import { Shares, type Share } from './shares.ts';

const step = fc.record({
  client: fc.constantFrom('noisy', 'a', 'b', 'c', 'd'),
  leaves: fc.boolean(),
  pick: fc.nat(),
});

/** `noisy` and clients starting with a or b are neighbours. */
const networkOf = (client: string): string => (/^[abn]/.test(client) ? 'near' : client);

function admits(shares: Shares, client: string, network = networkOf(client)): boolean {
  return shares.judge(client, network) === 'admitted';
}

test('the room is exceeded by at most the spare places, and a lone client may use all of it', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 8, max: 200 }),
      fc.array(step, { maxLength: 600 }),
      (room, steps) => {
        const shares = new Shares(room, new VirtualClock());
        const waiting: Share[] = [];
        for (const { client, leaves, pick } of steps) {
          if (leaves && waiting.length > 0)
            shares.leave(waiting.splice(pick % waiting.length, 1)[0]!);
          else if (admits(shares, client)) waiting.push(shares.enter(client, networkOf(client)));
          else {
            // Each of three networks is entitled to a third, whether or not the others use theirs.
            const near = waiting.filter(({ network }) => network === networkOf(client)).length;
            const isFull = shares.waiting >= shares.room;
            assert.ok(isFull || near >= Math.floor(room / 3), 'refused though there was room');
          }
          assert.equal(shares.waiting, waiting.length);
          assert.equal(shares.clients, new Set(waiting.map((each) => each.client)).size);
          assert.ok(shares.waiting <= shares.room + shares.room / 8 + 1);
        }
        for (const share of waiting) shares.leave(share);
        assert.deepEqual([shares.waiting, shares.clients], [0, 0]);
        while (admits(shares, 'alone')) shares.enter('alone', 'alone');
        assert.equal(shares.waiting, shares.room);
        assert.ok(shares.room >= room && shares.room < room + 8);
        assert.ok(admits(shares, 'newcomer'));
      },
    ),
  );
});

test('however much more one client sends, all that want everything eventually get the same', () => {
  for (const others of [1, 2, 5, 20]) {
    const shares = new Shares(1000, new VirtualClock());
    const queue: Share[] = [];
    const has = new Map<string, number>();
    const ask = (client: string): void => {
      if (!admits(shares, client, client)) return;
      queue.push(shares.enter(client, client));
      has.set(client, (has.get(client) ?? 0) + 1);
    };
    for (let i = 0; i < 20_000; i++) {
      // Each reply frees a place, and the noisy client sends a hundred times as many queries as the others.
      if (queue.length >= shares.room) {
        const share = queue.shift()!;
        shares.leave(share);
        has.set(share.client, has.get(share.client)! - 1);
      }
      for (let n = 0; n < 200; n++) ask('noisy');
      for (let n = 0; n < 2 * others; n++) ask(`client-${n % others}`);
    }
    const counts = [...has.values()];
    assert.equal(counts.length, others + 1);
    assert.ok(
      Math.max(...counts) <= 1.1 * Math.min(...counts) + 10,
      `${others}: ${counts.join(' ')}`,
    );
  }
});

test('a network with any number of clients leaves places to others, which eventually get an equal share', () => {
  fc.assert(
    fc.property(fc.integer({ min: 8, max: 2000 }), fc.nat(), (room, start) => {
      const shares = new Shares(room, new VirtualClock());
      for (let i = 0; i < 3 * room; i++)
        if (admits(shares, `invented-${start + i}`, 'hostile'))
          shares.enter(`invented-${start + i}`, 'hostile');
      assert.ok(shares.waiting >= shares.room);
      assert.equal(shares.judge('invented', 'hostile'), 'network');
      assert.equal(shares.judge('quiet', 'calm'), 'admitted');
      shares.enter('quiet', 'calm');
      // A client cannot forge a namespace.
      if (room >= 64) assert.equal(shares.judge('namespace/quiet', ''), 'admitted');
    }),
  );
});

test('a client that uses all places leaves some to its neighbours', () => {
  const shares = new Shares(1000, new VirtualClock());
  while (admits(shares, 'hog', 'net')) shares.enter('hog', 'net');
  for (let i = 0; i < 50; i++) {
    assert.equal(shares.judge(`neighbour-${i}`, 'net'), 'admitted');
    shares.enter(`neighbour-${i}`, 'net');
  }
});

/** A flood: the number of networks, clients per network, queries sent at once, and the reply time. */
interface Flood {
  readonly room: number;
  readonly networks: number;
  readonly clients: number;
  readonly burst: number;
  readonly waitMs: number;
  /** True if all of them send at the same moment. */
  readonly inStep: boolean;
}

const flood: fc.Arbitrary<Flood> = fc.record({
  room: fc.constantFrom(64, 256, 1000, 8192),
  networks: fc.constantFrom(1, 2, 20, 63, 64, 200, 256, 500),
  clients: fc.constantFrom(1, 3, 40),
  // A client that sends slightly more queries than the good client is also satisfied with that.
  burst: fc.constantFrom(5, 10, 20),
  waitMs: fc.constantFrom(20, 300, 2000),
  inStep: fc.boolean(),
});

/**
 * @returns the fraction of queries refused to a client with one query in flight, starting in the flood's fourth second
 */
function refusedBeside(
  { room, networks, clients, burst, waitMs, inStep }: Flood,
  seed: number,
): number {
  let now = 0;
  const shares = new Shares(room, { ...systemClock, now: () => now });
  const random = seededRandom(seed);
  /** Shares that are released, by millisecond. */
  const leaving = new Map<number, Share[]>();
  const ask = (client: string, network: string, waits: number): boolean => {
    if (!admits(shares, client, network)) return false;
    const share = shares.enter(client, network);
    const others = leaving.get(now + waits);
    if (others === undefined) leaving.set(now + waits, [share]);
    else others.push(share);
    return true;
  };
  const names = Array.from({ length: networks }, (_, network) =>
    Array.from({ length: clients }, (__, client) => `${network} ${client}`),
  );
  let asked = 0;
  let refused = 0;
  for (; now < 7000 + waitMs; now += 10) {
    for (let at = now - 9; at <= now; at++) {
      for (const share of leaving.get(at) ?? []) shares.leave(share);
      leaving.delete(at);
    }
    // The first client at any given moment gets the place, so this one arrives at a random position.
    const goodAt = random.integer(networks);
    for (let network = 0; network < networks; network++) {
      if (network === goodAt && now % 50 === 0) {
        const admitted = ask('good', 'good', 40);
        if (now > 4000 + waitMs) {
          asked++;
          if (!admitted) refused++;
        }
      }
      if (!inStep && random.integer(2) === 0) continue;
      for (let n = 0; n < burst; n++)
        ask(
          names[network]![n % clients]!,
          `net ${network}`,
          inStep ? waitMs : waitMs - 10 + random.integer(10),
        );
    }
  }
  return refused / asked;
}

test('a client below its fair share is (almost) never refused, however many networks flood', () => {
  fc.assert(
    fc.property(flood, fc.nat(), (given, seed) => {
      const part = refusedBeside(given, seed);
      assert.ok(part <= 0.1, `${(100 * part).toFixed(1)} % refused`);
    }),
    { numRuns: 12 },
  );
});

test('a flood that just fills the room, with most networks never refused, leaves a place to a client without any', () => {
  for (const clients of [1, 40]) {
    const weak = { room: 1000, networks: 256, clients, burst: 5, waitMs: 20, inStep: false };
    for (let seed = 0; seed < 6; seed++) assert.ok(refusedBeside(weak, seed) <= 0.02);
  }
});
