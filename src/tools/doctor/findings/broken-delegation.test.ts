import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FLAG, RCODE } from '../../../server/wire/iana.ts';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';
import { given, others, type Given } from '../../../../test/kit/given-answers.ts';
import { examine } from '../../../../test/kit/story.ts';
import { dnsMessage, udpPacket, type Captured } from '../../../../test/kit/packets.ts';
import { at } from '../../../../test/kit/story-parts.ts';

const RESOLVER = '10.244.2.4';
const [LAME, MUTE] = ['192.0.2.7', '192.0.2.8'];
const name = 'edi.partner.test.';

/** Queries without RD that one server refuses and the other does not answer. */
const refused: Given[] = Array.from({ length: 8 }, (_, nth) => ({
  ...{ atMs: nth * 1000, name, client: RESOLVER, server: LAME },
  reply: { flags: FLAG.QR, rcode: RCODE.REFUSED, query: { flags: 0 } },
}));
const silent: Captured[] = Array.from({ length: 8 }, (_, nth) =>
  at(
    nth * 1000 + 300,
    udpPacket(
      ends(RESOLVER, 41_000 + nth, MUTE),
      dnsMessage(name, 'A', { id: 700 + nth, flags: 0 }),
    ),
  ),
);
const fine = others(30).map((each) => ({ ...each, client: RESOLVER, server: '192.0.2.2' }));
const client = Array.from({ length: 4 }, (_, nth) =>
  asked(nth * 2000, ends('10.244.1.7', 51_000 + nth, RESOLVER), name, 900 + nth, {
    ...{ rcode: RCODE.SERVFAIL, tookMs: 1500 },
  }),
);

test('a zone with one server that refuses and one that is silent is one finding', async () => {
  for (const more of [[], client]) {
    const { findings } = await examine(inOrder([given([...refused, ...fine]), silent, ...more]));
    const [first, ...rest] = findings.filter(({ severity }) => severity !== 'info');
    assert.equal(first?.code, 'ND4059');
    for (const each of ['partner.test.', LAME, MUTE]) assert.ok(first.title.includes(each), each);
    assert.deepEqual(rest, []);
  }
});
