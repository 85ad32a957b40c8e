import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { seededRandom } from '../../base/random.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { parseName } from '../../wire/name.ts';
import { makeQuery, type Query } from '../../transport/query.ts';
import { Reply } from '../../wire/reply.ts';
import { replyBytes } from '../../../../test/kit/upstream.ts';
import { packEntries, unpackEntries } from './packed-entries.ts';
import { DENIAL, SUCCESS, type Half } from './entries.ts';
import { Store } from './store.ts';
import { rcodeName } from '../../wire/iana.ts';

function makeStore(clock: VirtualClock): Store {
  return new Store({
    capacities: [1024, 1024] as const,
    bytes: 1 << 20,
    staleSeconds: 0,
    clock,
    preferPositive: false,
    counting: false,
    random: seededRandom(7),
  });
}

const question = (name: string, type: number, variant: number): Query => {
  const query = makeQuery(parseName(name), type);
  query.dnssecOk = (variant & 1) !== 0;
  query.flags |= (variant & 2) === 0 ? 0 : 0x10;
  return query;
};

interface Kind {
  readonly name: string;
  readonly type: number;
  readonly variant: number;
  readonly half: Half;
  readonly rcode: number;
  readonly whole: boolean;
}

/** Entries of every kind: in both halves, for all client kinds, and some for whole names. */
const kinds: readonly Kind[] = [0, 1, 2, 3].flatMap((variant) => [
  { name: `data${variant}.example.`, type: 1, variant, half: SUCCESS, rcode: 0, whole: false },
  { name: `none${variant}.example.`, type: 28, variant, half: DENIAL, rcode: 0, whole: false },
  { name: `gone${variant}.example.`, type: 1, variant, half: DENIAL, rcode: 3, whole: true },
]);

async function filled(clock: VirtualClock): Promise<Store> {
  await clock.advance(1000);
  const store = makeStore(clock);
  for (const { name, type, variant, half, rcode, whole } of kinds) {
    const query = question(name, type, variant);
    const bytes = replyBytes(query, {
      answer: half === SUCCESS ? ['@ 60 A 192.0.2.1'] : [],
      rcode: rcodeName(rcode),
    });
    const reply = new Reply(bytes, 0, bytes.length, rcode, 'test');
    const ttlAt = store.offsets.of(reply);
    store.put(query, reply, half, {
      ttlAt,
      rcode,
      everyType: whole,
      seconds: 60,
      born: clock.now(),
    });
  }
  return store;
}

describe('cache entries in another process', () => {
  test('answer the same query in the same way, with the remaining time', async () => {
    const [before, after] = [new VirtualClock(), new VirtualClock()];
    const old = await filled(before);
    await before.advance(20_000);
    await after.advance(5_000_000);
    const store = makeStore(after);
    assert.equal(unpackEntries(packEntries(old, before.now()), store, after.now()), kinds.length);
    for (const { name, type, variant, whole } of kinds) {
      const query = question(name, whole ? 15 : type, variant);
      const slot = store.pick(query);
      assert.ok(slot >= 0, `${name} ${variant}`);
      assert.equal(store.remaining(slot, query), 40);
      const others = [0, 1, 2, 3].filter((other) => other !== variant);
      for (const other of others) assert.equal(store.pick(question(name, type, other)), -1);
    }
  });

  test('are omitted if they have expired', async () => {
    const clock = new VirtualClock();
    const store = await filled(clock);
    await clock.advance(60_000);
    assert.equal(packEntries(store, clock.now()).length, 0);
  });

  test('are loaded up to the first incomplete one', async () => {
    const clock = new VirtualClock();
    const bytes = packEntries(await filled(clock), clock.now());
    for (let length = 0; length < bytes.length; length += 7) {
      const count = unpackEntries(bytes.slice(0, length), makeStore(clock), clock.now());
      assert.ok(count < kinds.length);
    }
  });
});
