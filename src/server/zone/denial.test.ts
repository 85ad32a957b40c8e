import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TYPE } from '../wire/iana.ts';
import { readMessage, writeMessage } from '../wire/message.ts';
import { parseName } from '../wire/name.ts';
import { Query } from '../transport/query.ts';
import { MessageWriter } from '../wire/writer.ts';
import { ZoneAnswers } from './zone-answer.ts';
import { ZoneBuilder } from './zone-builder.ts';
import { ZoneData } from './zone-data.ts';

const NAMES = 10_000;
const times = [0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 30];

type Add = (owner: string, type: number, data: readonly number[]) => void;

function zoneOf(fill: (add: Add) => void): ZoneData {
  const builder = new ZoneBuilder(parseName('example.org.'));
  const add: Add = (owner, type, data) => {
    assert.equal(builder.add(parseName(owner), type, 300, Uint8Array.from(data)), null);
  };
  const names = [...parseName('ns.example.org.'), ...parseName('admin.example.org.')];
  add('example.org.', TYPE.SOA, [...names, ...times]);
  fill(add);
  return new ZoneData(builder.pack());
}

/** Counts the nodes that are searched to answer a DNSSEC query, and the bytes of the reply. */
function searches(
  zone: ZoneData,
  name: string,
): { readonly count: number; readonly reply: Buffer } {
  let count = 0;
  const find = zone.find.bind(zone);
  const flags = zone.flags.bind(zone);
  zone.find = (node, type) => (count++, find(node, type));
  zone.flags = (node) => (count++, flags(node));
  const bytes = writeMessage({
    id: 1,
    flags: 0,
    rcode: 0,
    question: [{ name, type: TYPE.A, class: 1 }],
    answer: [],
    authority: [],
    additional: [],
    edns: { udpSize: 1232, version: 0, dnssecOk: true, options: [] },
  });
  const query = new Query();
  query.read(bytes, 0, bytes.length);
  const reply = new ZoneAnswers(new MessageWriter(), 'file').answer(query, zone, false)!;
  return { count, reply: Buffer.from(reply.bytes.subarray(reply.start, reply.end)) };
}

test('in an unsigned zone, a DNSSEC query causes no searches, however many names the zone has', () => {
  const zone = zoneOf((add) => {
    for (let i = 0; i < NAMES; i++) add(`host${i}.example.org.`, TYPE.A, [192, 0, 2, 1]);
    add('*.wild.example.org.', TYPE.TXT, [1, 0x61]);
  });
  for (const name of [
    'zzz.example.org.',
    'x.zzz.example.org.',
    'x.wild.example.org.',
    'wild.example.org.',
  ])
    assert.ok(searches(zone, name).count < 40, name);
});

const HASH = '0123456789abcdefghijklmnopqrstuv';

/** A zone whose only NSEC3 record covers all names. */
function hashedZone(iterations: number): ZoneData {
  return zoneOf((add) => {
    const how = [1, 0, iterations >> 8, iterations & 0xff, 0];
    add('example.org.', TYPE.NSEC3PARAM, how);
    add(`${HASH}.example.org.`, TYPE.NSEC3, [...how, 20, ...Array<number>(20).fill(0), 0, 1, 0x40]);
  });
}

test('names are hashed as often as a zone specifies, up to a limit that keeps a query from delaying all others', () => {
  const proves = (iterations: number): boolean =>
    searches(hashedZone(iterations), 'zzz.example.org.').reply.includes(HASH);
  assert.equal(proves(0), true);
  assert.equal(proves(150), true);
  assert.equal(proves(151), false);
  assert.equal(proves(65_535), false);
});

/** An NSEC3 record with a one-byte salt. */
const saltedRecord = (salt: number): readonly number[] => [
  ...[1, 0, 0, 0, 1, salt, 20, ...Array<number>(20).fill(0), 0, 1, 0x40],
];

test("while a zone's salt is being changed, denials use the chain listed at its apex", () => {
  const other = HASH.replace('0', '1');
  const asked = Array.from({ length: 40 }, (_, i) => `x${i}.example.org.`);
  const proofs = (named: readonly number[]): readonly string[] => {
    const zone = zoneOf((add) => {
      for (const salt of named) add('example.org.', TYPE.NSEC3PARAM, [1, 0, 0, 0, 1, salt]);
      add(`${HASH}.example.org.`, TYPE.NSEC3, saltedRecord(0xaa));
      add(`${other}.example.org.`, TYPE.NSEC3, saltedRecord(0xbb));
    });
    const replies = asked.map((name) => searches(zone, name).reply);
    return [HASH, other].filter((hash) => replies.some((reply) => reply.includes(hash)));
  };
  assert.deepEqual(proofs([0xaa]), [HASH]);
  assert.deepEqual(proofs([0xbb]), [other]);
  assert.equal(proofs([0xaa, 0xbb]).length, 1);
  assert.deepEqual(proofs([]), []);
});

test('a zone whose NSEC3 chain is incomplete uses NSEC', () => {
  const zone = zoneOf((add) => {
    add('example.org.', TYPE.NSEC, [...parseName('example.org.'), 0, 1, 0x40]);
    // Flags other than 0 mean that the signer has not finished (RFC 5155 section 4.1.2).
    add('example.org.', TYPE.NSEC3PARAM, [1, 1, 0, 0, 1, 0xaa]);
    add(`${HASH}.example.org.`, TYPE.NSEC3, saltedRecord(0xaa));
  });
  const { reply } = searches(zone, 'x.example.org.');
  assert.equal(reply.includes(HASH), false);
  assert.ok(readMessage(reply).authority.some(({ type }) => type === TYPE.NSEC));
});

test('the NSEC record before a name is found at once after a delegation with ten thousand addresses', () => {
  const nsec = [...parseName('example.org.'), 0, 1, 0x40];
  const zone = zoneOf((add) => {
    add('example.org.', TYPE.NSEC, nsec);
    add('below.example.org.', TYPE.NS, [...parseName('ns0.below.example.org.')]);
    add('below.example.org.', TYPE.NSEC, nsec);
    for (let i = 0; i < NAMES; i++) add(`ns${i}.below.example.org.`, TYPE.A, [192, 0, 2, 1]);
  });
  const { count, reply } = searches(zone, 'zzz.example.org.');
  assert.ok(count < 40, `${count}`);
  assert.ok(reply.includes(Buffer.from([5, ...Buffer.from('below')])), 'that of the delegation');
});
