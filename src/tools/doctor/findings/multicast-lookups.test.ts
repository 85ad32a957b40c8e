import assert from 'node:assert/strict';
import { test } from 'node:test';
import { given, others, type Given } from '../../../../test/kit/given-answers.ts';
import {
  addressRecord,
  dnsMessage,
  udpPacket,
  type Captured,
} from '../../../../test/kit/packets.ts';
import { inOrder } from '../../../../test/kit/story-parts.ts';
import { examine, STORY_START } from '../../../../test/kit/story.ts';

const NAME = 'crm.acme.local.';

/** Four tries for A and AAAA by Multicast DNS. */
const multicast = (answer = false): Captured[] =>
  Array.from({ length: 4 }, (_, nth) =>
    ['A', 'AAAA', ...(answer ? ['reply'] : [])].map((type, at) => ({
      timeMs: STORY_START + 1000 * nth + at,
      bytes: udpPacket(
        { from: '10.244.1.45', fromPort: 5353, to: '224.0.0.251', toPort: 5353 },
        type === 'reply'
          ? dnsMessage(NAME, 'A', {
              reply: true,
              question: [],
              answer: [addressRecord(NAME, '10.1.1.1')],
            })
          : dnsMessage(NAME, type, { id: 0, flags: 0 }),
      ),
    })),
  ).flat();

const found = async (packets: readonly Captured[], all: readonly Given[] = []) => {
  const { findings } = await examine(
    inOrder([...given([...others(20), ...all]), ...packets].map((each) => [each])),
  );
  return findings.find(({ code }) => code === 'ND2019');
};

test('a name below .local that is looked up only by multicast is reported with the client', async () => {
  const alone = await found(multicast());
  assert.equal(alone?.severity, 'critical');
  assert.match(alone.seen[0]!, /10\.244\.1\.45 looked up crm\.acme\.local\. by multicast/);
  const other = { atMs: 700, name: NAME, address: '10.1.1.1', client: '10.244.1.9' };
  assert.match((await found(multicast(), [other]))?.seen.join(' ') ?? '', /Other clients query/);
  const own = await found(multicast(), [{ ...other, client: '10.244.1.45' }]);
  assert.equal(own?.severity, 'warning');
});

test('a name that a host answers by multicast is not reported', async () => {
  assert.equal(await found(multicast(true)), undefined);
});
