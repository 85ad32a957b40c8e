import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FLAG, RCODE, TYPE } from '../../../server/wire/iana.ts';
import { given, findingOf, others, type Given } from '../../../../test/kit/given-answers.ts';
import { costsAtMost } from '../../../../test/kit/growth.ts';
import { addressRecord, dnsMessage, udpPacket, back } from '../../../../test/kit/packets.ts';
import { at, ends, inOrder } from '../../../../test/kit/story-parts.ts';
import { examine, look } from '../../../../test/kit/story.ts';
import { Claims } from '../observe/claims.ts';
import { everything } from '../part-diagnosis.ts';
import { unsignedZone } from './unsigned-zone.ts';

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

/** DS records of zones, and names in them that fail. */
function zones(count: number) {
  const packets = Array.from({ length: count }, (_, nth) => {
    const zone = `z${nth}.bank.example.`;
    const way = ends(RESOLVER, 20_000 + nth, PARENT);
    const reply = { id: nth, reply: true, edns, answer: [{ ...ds, name: zone }] };
    return [
      at(nth, udpPacket(way, dnsMessage(zone, 'DS', { id: nth, edns }))),
      at(nth + 0.5, udpPacket(back(way), dnsMessage(zone, 'DS', reply))),
      ...[0, 1, 2, 3].flatMap((host) =>
        given([
          {
            name: `h${host}.${zone}`,
            atMs: nth,
            server: RESOLVER,
            reply: { rcode: RCODE.SERVFAIL },
          },
        ]),
      ),
    ];
  });
  return look(inOrder(packets), [], [everything])[0]!;
}

test('many zones with DS records and names that fail are judged in time that grows with their number', async () => {
  const [many, few] = [zones(480), zones(60)];
  await costsAtMost(
    24,
    () => unsignedZone.inCapture!(many, new Claims(many)),
    () => unsignedZone.inCapture!(few, new Claims(few)),
  );
});
