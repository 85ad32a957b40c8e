import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { seededRandom } from '../../base/random.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { parseName } from '../../wire/name.ts';
import { makeQuery, type Query } from '../../transport/query.ts';
import { Reply } from '../../wire/reply.ts';
import { replyBytes } from '../../../../test/kit/upstream.ts';
import { DENIAL, SUCCESS, type Half } from './entries.ts';
import { shardCapacity, Store } from './store.ts';

function makeStore(
  capacity: number,
  bytes = 32 << 20,
): { readonly store: Store; readonly clock: VirtualClock } {
  const clock = new VirtualClock();
  const parts = {
    capacities: [capacity, capacity],
    bytes,
    staleSeconds: 0,
    preferPositive: false,
    counting: false,
    clock,
  } as const;
  return { store: new Store({ ...parts, random: seededRandom(7) }), clock };
}

const question = (name: string, type = 1): Query => makeQuery(parseName(name), type);

function put(store: Store, query: Query, half: Half = SUCCESS, texts = 1): number {
  const answer = Array.from({ length: texts }, (_, i) =>
    texts === 1 ? '@ 60 A 192.0.2.1' : `@ 60 TXT ${'x'.repeat(200)}${i}`,
  );
  const bytes = replyBytes(query, { answer });
  const reply = new Reply(bytes, 0, bytes.length, 0, 'test');
  const ttlAt = store.offsets.of(reply);
  return store.put(query, reply, half, { ttlAt, rcode: 0, everyType: false, seconds: 60, born: 0 });
}

const total = ({ counts }: Store): number => counts[SUCCESS] + counts[DENIAL];

describe('capacity', () => {
  test('10000 entries are 256 shards of 39, and a shard has at least 4', () => {
    assert.equal(shardCapacity(10_000) * 256, 9984);
    assert.equal(shardCapacity(1), 4);
  });

  test('a cache for four billion entries takes no more memory than its messages may', () => {
    const before = process.memoryUsage().arrayBuffers;
    const { store } = makeStore(4_294_967_295);
    assert.ok(process.memoryUsage().arrayBuffers - before < 8 << 20);
    for (let i = 0; i < 5000; i++) put(store, question(`n${i}.example.`));
    assert.deepEqual([total(store), store.evictions[SUCCESS]], [5000, 0]);
  });

  test('a full shard evicts one entry from its own half for each new one', () => {
    const { store } = makeStore(1024);
    for (let i = 0; i < 5000; i++) put(store, question(`n${i}.example.`), SUCCESS);
    assert.ok(
      store.counts[SUCCESS] <= 1024 && store.counts[SUCCESS] > 900,
      String(store.counts[SUCCESS]),
    );
    assert.equal(store.counts[SUCCESS] + store.evictions[SUCCESS], 5000);
    const before = store.counts[SUCCESS];
    for (let i = 0; i < 100; i++) put(store, question(`d${i}.example.`), DENIAL);
    assert.equal(store.counts[SUCCESS], before);
    assert.equal(store.counts[DENIAL], 100);
  });

  test('storing the same question again replaces the entry', () => {
    const { store } = makeStore(1024);
    for (let i = 0; i < 10; i++) put(store, question('www.example.'));
    assert.equal(total(store), 1);
    assert.equal(store.evictions[SUCCESS], 0);
  });

  test('the most recently stored entries are all found, each with its own message', () => {
    const { store } = makeStore(10_000);
    for (let i = 0; i < 3000; i++) put(store, question(`n${i}.example.`));
    for (let i = 0; i < 3000; i++) {
      const query = question(`n${i}.example.`);
      const slot = store.pick(query);
      assert.ok(slot >= 0, `n${i}`);
      const reply = store.reply(slot);
      assert.deepEqual(
        reply.bytes.subarray(reply.start + 12, reply.start + 12 + query.nameLength),
        query.wireName,
      );
    }
  });
});

describe('memory', () => {
  test('messages never exceed the limit, and the oldest are evicted', () => {
    const limit = 1 << 20;
    const { store } = makeStore(10_000, limit);
    for (let i = 0; i < 4000; i++) {
      put(store, question(`n${i}.example.`), SUCCESS, 1 + (i % 7) * 3);
      assert.ok(store.log.allocated <= limit);
    }
    assert.ok(store.evictions[SUCCESS] > 0);
    assert.ok(store.pick(question('n3999.example.')) >= 0);
    assert.equal(store.pick(question('n0.example.')), -1);
  });

  test('messages too large for a shared chunk have their own, and are removed with their entry', () => {
    const { store } = makeStore(10_000, 1 << 20);
    for (let i = 0; i < 60; i++) put(store, question(`n${i}.example.`), SUCCESS, 120);
    assert.ok(store.log.allocated <= 1 << 20);
    assert.ok(store.pick(question('n59.example.')) >= 0);
    for (let i = 0; i < 60; i++) put(store, question(`n${i}.example.`), SUCCESS, 1);
    assert.equal(store.log.allocated, 65536);
  });

  test('overwriting entries repeatedly does not increase memory use', () => {
    const { store } = makeStore(10_000);
    for (let round = 0; round < 25; round++) {
      for (let i = 0; i < 500; i++)
        put(store, question(`n${i}.example.`), SUCCESS, 1 + ((i + round) % 5));
    }
    assert.ok(
      store.log.allocated < 3 * store.log.live + 6 * 65536,
      `${store.log.allocated} for ${store.log.live}`,
    );
    for (let i = 0; i < 500; i++) assert.ok(store.pick(question(`n${i}.example.`)) >= 0);
  });

  test('a returned reply stays intact after its entry is removed', () => {
    const { store } = makeStore(10_000, 1 << 20);
    const query = question('kept.example.');
    const reply = store.reply(put(store, query));
    const bytes = reply.bytes.slice(reply.start, reply.end);
    for (let i = 0; i < 3000; i++) put(store, question(`n${i}.example.`), SUCCESS, 5);
    assert.equal(store.pick(query), -1);
    assert.deepEqual(reply.bytes.slice(reply.start, reply.end), bytes);
  });

  test('entries with similar replies share their list of offsets', () => {
    const { store } = makeStore(10_000);
    const [one, other] = ['aaa.example.', 'bbb.example.'].map((name) =>
      store.reply(put(store, question(name))),
    );
    assert.equal(one!.ttlAt, other!.ttlAt);
  });
});

test('names with the same hash are distinguished, and at most 48 are stored, which limits the chain length', () => {
  const { store } = makeStore(1_000_000);
  for (let i = 0; i < 500; i++) {
    const query = question(`n${i}.example.`);
    query.hash = 42;
    put(store, query);
  }
  assert.ok(total(store) <= 48, String(total(store)));
  const last = question('n499.example.');
  last.hash = 42;
  const reply = store.reply(store.pick(last));
  assert.deepEqual(
    reply.bytes.subarray(reply.start + 12, reply.start + 12 + last.nameLength),
    last.wireName,
  );
});

describe('eviction when there is no room', () => {
  /**
   * Queries the good names in turn while `flood` continues.
   * @returns the fraction that was found
   */
  function hitRate(
    { store, clock }: ReturnType<typeof makeStore>,
    flood: (index: number) => void,
    { good = 2000, rounds = 1000, perRound = 16 } = {},
  ): number {
    let hits = 0;
    let asked = 0;
    const ask = (name: string): void => {
      const query = question(name);
      const slot = store.pick(query);
      asked++;
      if (slot < 0) put(store, query);
      else {
        hits++;
        store.use(slot);
      }
    };
    for (let round = 0; round < 2; round++)
      for (let i = 0; i < good; i++) ask(`good-${i}.example.`);
    hits = asked = 0;
    for (let i = 0; i < rounds; i++) {
      flood(i);
      for (let k = 0; k < perRound; k++) ask(`good-${(i * perRound + k) % good}.example.`);
      void clock.advance(1);
    }
    return hits / asked;
  }

  /** Queries a name like a client would, so that a hit is counted and a miss stored. */
  function askFor(store: Store, name: string, bytes: number): void {
    const query = question(name);
    const slot = store.pick(query);
    if (slot >= 0) return store.use(slot);
    const reply = replyOf(query, bytes);
    const ttlAt = store.offsets.of(reply);
    const entry = { ttlAt, rcode: 0, everyType: false, seconds: 60, born: 0 };
    store.put(query, reply, SUCCESS, entry);
  }

  /** Creates a one-record reply with this many bytes. */
  function replyOf(query: Query, size: number): Reply {
    const bytes = new Uint8Array(size);
    const end = query.questionEnd;
    bytes.set(query.bytes.subarray(query.start, query.start + end));
    bytes[7] = 1;
    const data = size - end - 12;
    bytes.set([0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 60, data >> 8, data & 0xff], end);
    return new Reply(bytes, 0, size, 0, 'test');
  }

  const floods: Readonly<Record<string, (store: Store, index: number) => void>> = {
    'answers of 60 KiB': (store, i) => askFor(store, `large-${i}.example.`, 60_000),
    'answers of 60 KiB, each asked twice': (store, i) =>
      askFor(store, `large-${i >> 1}.example.`, 60_000),
    'answers of 60 KiB, a hundred of them again and again': (store, i) =>
      askFor(store, `large-${i % 100}.example.`, 60_000),
    'answers of 10 KiB': (store, i) => askFor(store, `medium-${i}.example.`, 10_000),
    'answers of 4 KB': (store, i) => askFor(store, `medium-${i}.example.`, 4000),
    'answers of 4 KB, each asked twice': (store, i) =>
      askFor(store, `medium-${i >> 1}.example.`, 4000),
    'sixteen small answers of random names at a time': (store, i) => {
      for (let k = 0; k < 16; k++) askFor(store, `random-${i}-${k}.example.`, 100);
    },
  };
  for (const [what, flood] of Object.entries(floods)) {
    test(`a flood of ${what} does not evict names that clients query`, () => {
      const world = makeStore(10_000, 4 << 20);
      // Short messages compete for entries, long ones for bytes.
      const counts = what.includes('random') ? { good: 300, perRound: 4 } : {};
      const rate = hitRate(world, (index) => flood(world.store, index), counts);
      assert.ok(rate > 0.98, String(rate));
      assert.ok(world.store.log.allocated <= 4 << 20);
    });
  }

  test('large messages take at most a quarter of the memory, and the oldest of them are evicted first', () => {
    const { store } = makeStore(10_000, 4 << 20);
    for (let i = 0; i < 200; i++) {
      askFor(store, `large-${i}.example.`, 60_000);
      assert.ok(store.log.large <= 1 << 20);
    }
    assert.ok(store.pick(question('large-199.example.')) >= 0);
    assert.equal(store.pick(question('large-0.example.')), -1);
  });

  test('an expired entry is not spared', () => {
    const { store, clock } = makeStore(10_000, 1 << 20);
    const query = question('over.example.');
    store.use(put(store, query));
    void clock.advance(61_000);
    for (let i = 0; i < 3000; i++) put(store, question(`n${i}.example.`), SUCCESS, 5);
    assert.equal(store.pick(query), -1);
    assert.equal(store.evictions[SUCCESS] > 0, true);
  });

  test('if all entries were hit, the oldest are evicted anyway', () => {
    const { store } = makeStore(10_000, 1 << 20);
    for (let i = 0; i < 4000; i++) {
      store.use(put(store, question(`n${i}.example.`), SUCCESS, 5));
      assert.ok(store.log.allocated <= 1 << 20);
    }
    assert.ok(store.pick(question('n3999.example.')) >= 0);
  });
});
