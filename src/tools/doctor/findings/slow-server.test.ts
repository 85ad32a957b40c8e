import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';
import { examine } from '../../../../test/kit/story.ts';

/** A client asks for two names of a zone and one other external name. @param otherMs what that takes */
async function seenBy(otherMs: number): Promise<string> {
  const packets = Array.from({ length: 24 }, (_, nth) => {
    const isOther = nth % 3 === 2;
    const name = isOther ? 'api.stripe.com.' : `${['api', 'files'][nth % 3]!}.partner-bank.eu.`;
    const way = ends('10.244.1.21', 20_000 + nth * 7, '10.96.0.10');
    return [
      ...asked(nth * 3000, way, name, nth, { tookMs: isOther ? otherMs : 1500 }),
      ...asked(nth * 3000 + 1600, way, 'cart.shop.svc.cluster.local.', 100 + nth),
    ];
  });
  const { findings } = await examine(inOrder(packets));
  const [first] = findings;
  assert.equal(first?.code, 'ND4003');
  return first.seen.join(' ');
}

test('a zone is slow if one other external name is quick again and again', async () => {
  assert.match(await seenBy(15), /for names in partner-bank\.eu\. took/);
  assert.doesNotMatch(await seenBy(1500), /names in partner-bank/);
});
