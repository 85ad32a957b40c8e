import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { VirtualClock } from '../../base/virtual-clock.ts';
import type { ControlContext } from '../../engine/contract/control-context.ts';
import { packCaches, shareCache, takeCaches } from './handover.ts';
import type { CacheMessage, CacheOrder } from './cache-messages.ts';

/** Creates a cache's control part for the given number of workers, and records the orders sent to them. */
function cache(t: TestContext, workers: number) {
  const clock = new VirtualClock();
  const asked: CacheOrder[] = [];
  let join: () => Iterable<unknown> = () => [];
  let stop: () => unknown = () => undefined;
  const hear = shareCache({
    servers: ['dns://.:53'],
    zones: ['.'],
    view: '',
    clock,
    publish: (order: unknown) => (asked.push(order as CacheOrder), workers),
    onJoin: (run: typeof join) => (join = run),
    onStart: (run: () => void) => run(),
    onStop: (run: typeof stop) => (stop = run),
  } as unknown as ControlContext);
  t.after(() => stop());
  const reply = (text: string, id = (asked.at(-1) as { id: number }).id): void =>
    hear({ kind: 'packed', id, entries: Buffer.from(text) } satisfies CacheMessage);
  return { clock, asked, reply, join: () => [...join()] };
}

const texts = (entries: readonly unknown[]): string[] =>
  entries.map((order) => Buffer.from((order as { entries: Uint8Array }).entries).toString());

describe('cached entries are handed over', () => {
  test('as soon as the last worker has reported its entries', async (t) => {
    const { asked, reply, join } = cache(t, 2);
    const packing = packCaches();
    assert.equal(asked.length, 1);
    reply('one');
    reply('two');
    const forget = takeCaches(await packing);
    assert.deepEqual(texts(join()), ['one', 'two']);
    forget();
    assert.deepEqual(join(), []);
  });

  test('without those of a worker that is silent for half a second', async (t) => {
    const { clock, reply, join } = cache(t, 2);
    const packing = packCaches();
    reply('one');
    await clock.advance(499);
    reply('late', 0);
    await clock.advance(1);
    takeCaches(await packing);
    assert.deepEqual(texts(join()), ['one']);
    takeCaches(Buffer.alloc(0));
  });

  test('immediately for caches without workers', async (t) => {
    cache(t, 0);
    assert.equal((await packCaches()).length, 0);
  });
});
