import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FLAG, TYPE } from '../../../server/wire/iana.ts';
import { findingOf, others, type Given } from '../../../../test/kit/given-answers.ts';
import { addressRecord } from '../../../../test/kit/packets.ts';
import { at } from '../../../../test/kit/story-parts.ts';

const DAY_S = 86_400;
const name = 'www.signed.example.';
const edns = { udpSize: 1232, version: 0, dnssecOk: true, options: [] };
const startS = Math.floor(at(0, new Uint8Array(0)).timeMs / 1000);

/** Authoritative answers with signatures that become valid this number of days after the capture. */
const signed = (days: number): Given[] =>
  Array.from({ length: 5 }, (_, nth) => ({
    ...{ atMs: nth * 1000, name, server: '192.0.2.53' },
    reply: {
      flags: FLAG.QR | FLAG.AA,
      query: { flags: 0, edns },
      answer: [
        addressRecord(name, '192.0.2.1'),
        {
          ...{ name, type: TYPE.RRSIG, class: 1, ttl: 30 },
          data: {
            ...{ typeCovered: TYPE.A, algorithm: 13, labels: 3, originalTtl: 30 },
            ...{ inception: startS + days * DAY_S, expiration: startS + (days + 30) * DAY_S },
            ...{ keyTag: 1, signer: 'signed.example.', signature: new Uint8Array(64) },
          },
        },
      ],
    },
  }));

test('signatures of a zone that are not yet valid are reported at its own servers', async () => {
  const early = await findingOf('ND4035', [...others(20), ...signed(5)]);
  assert.match(early?.title ?? '', /signed\.example\. are not yet valid/);
  assert.match(early!.fix.join(' '), /clock/);
  const expired = await findingOf('ND4035', [...others(20), ...signed(-60)]);
  assert.match(expired?.title ?? '', /have expired/);
  assert.equal(await findingOf('ND4035', [...others(20), ...signed(-5)]), undefined);
});
