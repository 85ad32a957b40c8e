import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { healthy, play } from '../../../test/kit/story.ts';
import { collectMemory } from '../../server/runtime/memory-policy.ts';
import { SearchDomains } from '../capture/pair/search-walk.ts';
import { Reading } from '../capture/read/reading.ts';
import { RecentExamination } from './recent-examination.ts';

async function examined(recent: RecentExamination, lookups: number): Promise<void> {
  const packets = await play(
    [
      {
        address: '10.244.1.1',
        resolver: 'go',
        lookups: Array.from({ length: lookups }, (_, at) => ({
          atMs: at,
          name: `n${at}.example.com.`,
        })),
      },
    ],
    healthy,
  );
  const { ended, lookup } = recent;
  const reading = new Reading({ ended, lookup });
  for (const { bytes, timeMs } of packets) reading.takeNetwork(bytes, 0, bytes.length, timeMs, 0);
  reading.end();
}

test('a window with too many exchanges has no diagnosis and releases its observations', async () => {
  const unread = { messages: 0, counts: new Map<string, number>() };
  const recent = new RecentExamination({
    ...{ windowMs: 60_000, most: 100, domains: new SearchDomains(), unread: () => unread },
  });
  recent.advance(0);
  await examined(recent, 1);
  assert.notEqual(recent.diagnosis(), null);
  const observed = new WeakRef(recent.observed!);
  await examined(recent, 200);
  assert.equal(recent.diagnosis(), null);
  await setImmediate();
  collectMemory();
  assert.equal(observed.deref(), undefined);
});
