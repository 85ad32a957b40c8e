import assert from 'node:assert/strict';
import { test } from 'node:test';
import { everything } from '../part-diagnosis.ts';
import { look } from '../../../../test/kit/story.ts';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';
import { flooderOf, type Flooder } from './flooder.ts';

const [BUSY, OTHER] = ['10.244.1.122', '10.244.1.141'] as const;

/** 20 s of two clients; every tenth query is lost. @param perSecond of the busy one @param rcode of its replies */
function flooder(perSecond: number, rcode: number): Flooder | null {
  const of = (client: string, rate: number, code: number) =>
    Array.from({ length: 20 * rate }, (_, i) =>
      asked((i * 1000) / rate, ends(client, 20_000 + i), `${client.at(-1)}x${i}.example.com.`, i, {
        rcode: code,
        tookMs: i % 10 === 0 ? null : 0.6,
      }),
    );
  const packets = inOrder([...of(BUSY, perSecond, rcode), ...of(OTHER, 20, 0)]);
  const [observed] = look(packets, [], [everything]);
  return flooderOf(observed!, observed!.losses);
}

test('one client asks three quarters of all, for names that do not exist', () => {
  assert.equal(flooder(60, 3)?.address, BUSY);
});

test('it asks for names that exist: it is only busy', () => {
  assert.equal(flooder(60, 0), null);
});

test('it asks less than half of all', () => {
  assert.equal(flooder(18, 3), null);
});
