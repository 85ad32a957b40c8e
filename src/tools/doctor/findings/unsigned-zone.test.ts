import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FLAG, RCODE, TYPE } from '../../../server/wire/iana.ts';
import { given, findingOf, others, type Given } from '../../../../test/kit/given-answers.ts';
import { addressRecord, dnsMessage, udpPacket, back } from '../../../../test/kit/packets.ts';
import { at, ends, inOrder } from '../../../../test/kit/story-parts.ts';
import { examine } from '../../../../test/kit/story.ts';

const [RESOLVER, PARENT, PRIVATE] = ['10.0.1.9', '10.0.0.2', '10.0.0.60'];
const name = 'gw.bank.example.';
const edns = { udpSize: 1232, version: 0, dnssecOk: true, options: [] };
const query = { edns };
const signature = {
  ...{ name, type: TYPE.RRSIG, class: 1, ttl: 30 },
  data: {
    ...{ typeCovered: TYPE.A, algorithm: 13, labels: 3, originalTtl: 30 },
    ...{ inception: 0, expiration: 0, keyTag: 1, signer: 'bank.example.' },
    signature: new Uint8Array(64),
  },
};
const ds = {
  ...{ name: 'bank.example.', type: TYPE.DS, class: 1, ttl: 30 },
  data: { keyTag: 1, algorithm: 13, digestType: 2, digest: new Uint8Array(32) },
};

/** A resolver that fails for its client, and the answers that it gets. */
function world(withDs: boolean, isSigned: boolean) {
  const failures = Array.from({ length: 20 }, (_, i): Given => ({
    ...{ atMs: i * 1000, name, server: RESOLVER, reply: { rcode: RCODE.SERVFAIL } },
  }));
  const answers = Array.from({ length: 4 }, (_, i): Given => ({
    ...{ atMs: i * 4000 + 1, name, client: RESOLVER, server: PRIVATE },
    reply: {
      query,
      edns,
      flags: FLAG.QR | FLAG.AA,
      answer: [addressRecord(name, '10.9.9.9'), ...(isSigned ? [signature] : [])],
    },
  }));
  const way = ends(RESOLVER, 40_000, PARENT);
  const ofParent = [
    at(2, udpPacket(way, dnsMessage('bank.example.', 'DS', { id: 9, edns }))),
    at(
      3,
      udpPacket(
        back(way),
        dnsMessage('bank.example.', 'DS', { id: 9, reply: true, edns, answer: [ds] }),
      ),
    ),
  ];
  return inOrder([given([...failures, ...answers, ...others(20)]), withDs ? ofParent : []]);
}

test('a zone with a DS record whose own server answers without signatures is unsigned', async () => {
  const [first, ...rest] = (await examine(world(true, false))).findings;
  assert.equal(first?.code, 'ND4035');
  assert.match(first.title, /^bank\.example has a DS record but is served unsigned/);
  assert.match(first.seen.join(' '), /10\.0\.0\.60 answered 4 queries/);
  assert.match(first.fix[0]!, /domain-insecure/);
  assert.ok(!rest.some(({ code }) => code === 'ND4002' || code === 'ND4007'));
});

test('without a DS record, or with signatures, an unsigned zone is not the cause', async () => {
  for (const packets of [world(false, false), world(true, true)])
    assert.ok(!(await examine(packets)).findings.some(({ title }) => title.includes('unsigned')));
  assert.equal(await findingOf('ND4035', others(20)), undefined);
});
