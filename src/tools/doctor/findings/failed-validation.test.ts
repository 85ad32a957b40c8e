import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FLAG, RCODE } from '../../../server/wire/iana.ts';
import { findingOf, others, type Given } from '../../../../test/kit/given-answers.ts';

/** SERVFAIL without CD each second, and every third second an answer with CD. */
const failing = (flagsOfAnswer: number): Given[] =>
  Array.from({ length: 30 }, (_, i) => ({
    ...{ atMs: i * 1000, name: 'www.signed.example.' },
    ...(i % 3 === 0
      ? { address: '192.0.2.1', reply: { flags: FLAG.QR | FLAG.RD | FLAG.RA | flagsOfAnswer } }
      : { reply: { rcode: RCODE.SERVFAIL } }),
  }));

test('a name that is SERVFAIL, and answered with CD, fails validation', async () => {
  const found = await findingOf('ND4035', [...failing(FLAG.CD), ...others(20)]);
  assert.equal(found?.severity, 'critical');
  assert.match(found.seen[0]!, /20 queries got SERVFAIL, while 10 with the CD bit/);
  assert.equal(await findingOf('ND4007', [...failing(FLAG.CD), ...others(20)]), undefined);
});

test('a name that is answered at times without CD shows nothing about validation', async () => {
  assert.equal(await findingOf('ND4035', [...failing(0), ...others(20)]), undefined);
});

test('an answer with CD from another server shows nothing about the server that fails', async () => {
  const elsewhere = failing(FLAG.CD).map((each) => ({
    ...each,
    ...(each.address === undefined
      ? { server: '10.244.2.5' }
      : { server: '10.10.0.53', client: '10.244.2.9' }),
  }));
  assert.equal(await findingOf('ND4035', [...elsewhere, ...others(20)]), undefined);
  // A resolver that gets the answer, and fails for its own clients, rejects it.
  const forwarded = elsewhere.map((each) =>
    each.client === undefined ? each : { ...each, client: '10.244.2.5' },
  );
  assert.ok((await findingOf('ND4035', [...forwarded, ...others(20)])) !== undefined);
});
