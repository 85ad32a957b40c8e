import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { test } from 'node:test';
import { systemClock, type Clock } from '../base/clock.ts';
import { TYPE } from '../wire/iana.ts';
import { writeMessage, type Message } from '../wire/message.ts';
import { parseName, printName } from '../wire/name.ts';
import { parseZone } from '../wire/zone-text.ts';
import { bytesOf, type PackedZone } from './packed-zone.ts';
import { RecordCursor } from './record-cursor.ts';
import type { Transferred } from './incoming-zone.ts';
import { transferIn } from './transfer-in.ts';
import { ZoneBuilder } from './zone-builder.ts';
import { ZoneData } from './zone-data.ts';

const origin = 'example.org.';
const MOST_BYTES = 10_000;

/** A framed message from a primary that contains these records. */
function framed(id: number, records: string, beside: Partial<Message> = {}): Buffer {
  const message = writeMessage({
    id,
    flags: 0x8000,
    rcode: 0,
    question: [],
    answer: [...parseZone(records, { file: 'primary', origin, ttl: 60 })],
    authority: [],
    additional: [],
    edns: null,
    ...beside,
  });
  return Buffer.of(message.length >> 8, message.length & 0xff, ...message);
}

/** Fetches the zone from a primary that sends these records regardless of the query, and then continues with `rest`. */
async function from(
  records: string,
  known: PackedZone | null = old,
  goesOn: (socket: Socket, id: number) => void = () => undefined,
  maxBytes = MOST_BYTES,
  reserve: (bytes: number) => void = () => undefined,
  clock: Clock = systemClock,
): Promise<Transferred> {
  const primary = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (query: Buffer) => {
      const id = query.readUInt16BE(2);
      socket.write(framed(id, records));
      goesOn(socket, id);
    });
  }).listen(0, '127.0.0.1');
  await once(primary, 'listening');
  const { port } = primary.address() as AddressInfo;
  const terms = {
    // A large transfer takes a while on a busy machine.
    idleMs: maxBytes > MOST_BYTES ? 10_000 : 300,
    totalMs: 20_000,
    maxBytes,
    claim: () => undefined,
    reserve,
    id: 7,
    key: null,
  };
  const { signal } = new AbortController();
  try {
    const server = { host: '127.0.0.1', port };
    return await transferIn(parseName(origin), known, server, {
      ...terms,
      signal,
      seconds: () => 0,
      clock,
    });
  } finally {
    primary.close();
  }
}

const soa = (serial: number, owner = '@'): string =>
  `${owner} SOA ns.x. h.x. ${serial} 100 10 1000 5\n`;

function hosts({ packed }: Transferred): string[] {
  const names: string[] = [];
  for (const cursor = new RecordCursor(new ZoneData(packed!)); cursor.next();)
    if (cursor.type === TYPE.A) names.push(printName(cursor.owner));
  return names;
}

const { packed: old } = await from(soa(1) + '@ NS ns.x.\nwww A 192.0.2.1\n' + soa(1), null);

test('differences turn the old version into the next one', async () => {
  const found = await from(
    soa(3) +
      soa(1) +
      'www A 192.0.2.1\n' +
      soa(2) +
      'a A 192.0.2.2\n' +
      soa(2) +
      soa(3) +
      'b A 192.0.2.3\n' +
      soa(3),
  );
  assert.equal(found.packed?.serial, 3);
  assert.deepEqual(hosts(found), ['a.example.org.', 'b.example.org.']);
});

test('a record without data is rejected, unless its type allows it', async () => {
  const empty = (type: string): string => `${soa(2)}@ NS ns.x.\na ${type} \\# 0\n${soa(2)}`;
  await assert.rejects(from(empty('TYPE1'), null), /the data of a record is empty/);
  await assert.rejects(from(empty('TYPE5'), null), /the data of a record is empty/);
  assert.equal((await from(empty('TYPE10'), null)).packed?.records, 3);
});

test('memory for the next version is requested before that version is built', async () => {
  const step = soa(2) + soa(1) + soa(2) + 'a A 192.0.2.2\n' + soa(2);
  const asked: number[] = [];
  await from(step, old, undefined, MOST_BYTES, (bytes) => void asked.push(bytes));
  assert.deepEqual(asked, [bytesOf(old)]);
  const none = (): never => {
    throw new Error('there is no room for it');
  };
  await assert.rejects(from(step, old, undefined, MOST_BYTES, none), /there is no room for it/);
  // A full zone creates no second copy, and neither does an unchanged one.
  await from(soa(1), old, undefined, MOST_BYTES, none);
  await from(soa(2) + 'a A 192.0.2.2\n' + soa(2), old, undefined, MOST_BYTES, none);
});

test('differences that start or end at an unexpected SOA record are rejected', async () => {
  const odd = (serial: number): string => soa(serial).replace(' 5\n', ' 777\n');
  await assert.rejects(
    from(soa(2) + odd(1) + soa(2) + 'b A 192.0.2.2\n' + soa(2)),
    /differences begin at an SOA record other than the current one$/,
  );
  await assert.rejects(
    from(soa(2) + soa(1) + odd(2) + 'b A 192.0.2.2\n' + soa(2)),
    /differences end at an SOA record other than the announced one$/,
  );
});

test('names in SOA records are compared ignoring case, also in differences', async () => {
  const capitals = soa(1).replace('ns.x. h.x.', 'NS.x. H.X.');
  const { packed: known } = await from(capitals + '@ NS ns.x.\n' + capitals, null);
  const found = await from(soa(2) + soa(1) + soa(2) + 'b A 192.0.2.2\n' + soa(2), known);
  assert.equal(found.packed?.serial, 2);
  // A number is a different one even if its bytes differ only like upper and lower case.
  const numbers = (minimum: number): string => soa(1).replace(' 5\n', ` ${minimum}\n`);
  const { packed: letter } = await from(numbers(0x41) + '@ NS ns.x.\n' + numbers(0x41), null);
  await assert.rejects(
    from(soa(2) + numbers(0x61) + soa(2) + 'b A 192.0.2.2\n' + soa(2), letter),
    /differences begin at an SOA record other/,
  );
});

test('differences that remove a missing record are rejected', async () => {
  for (const records of [
    soa(2) + soa(1) + 'gone A 192.0.2.9\n' + soa(2) + soa(2),
    soa(2) + soa(1) + 'www A 192.0.2.9\n' + soa(2) + soa(2),
    soa(3) + soa(1) + 'www A 192.0.2.1\n' + soa(2) + soa(2) + 'www A 192.0.2.1\n' + soa(3) + soa(3),
  ])
    await assert.rejects(from(records), /remove a missing record: \S+ A$/);
});

test('records that differences both add and remove need no old version, and those outside the zone need none at all', async () => {
  const found = await from(
    soa(3) +
      soa(1) +
      'elsewhere.test. A 192.0.2.7\n' +
      soa(2) +
      'b A 192.0.2.3\n' +
      soa(2) +
      'b A 192.0.2.3\nWWW A 192.0.2.1\n' +
      soa(3) +
      'www 77 A 192.0.2.1\n' +
      soa(3),
  );
  assert.deepEqual(
    hosts(found).map((name) => name.toLowerCase()),
    ['www.example.org.'],
  );
});

test('an SOA record with a different name begins and ends nothing', async () => {
  for (const owner of ['evil.test.', 'below', 'org.']) {
    const other = (serial: number): string => soa(serial, owner);
    for (const records of [
      other(2) + other(1) + other(2) + 'a A 192.0.2.2\n' + other(2),
      soa(2) + other(1) + soa(2) + soa(2),
      soa(2) + soa(1) + other(2) + soa(2),
      soa(2) + soa(1) + soa(2) + 'a A 192.0.2.2\n' + other(2),
      soa(2) + 'a A 192.0.2.2\n' + other(2),
    ])
      await assert.rejects(from(records), /the SOA record belongs to /);
  }
});

test('the SOA record may be spelled in any case', async () => {
  const found = await from(soa(2, 'EXAMPLE.org.') + 'a A 192.0.2.2\n' + soa(2, 'example.ORG.'));
  assert.equal(found.packed?.serial, 2);
});

test('differences with a gap between them are rejected', async () => {
  const begun = soa(9) + soa(1) + soa(2) + 'a A 192.0.2.2\n';
  await assert.rejects(from(begun + soa(7) + soa(9) + soa(9)), /continue at serial 7 instead of 2/);
  await assert.rejects(
    from(soa(9) + soa(7) + soa(9) + soa(9)),
    /continue at serial 7 instead of 1/,
  );
});

test('a transfer that ends before its second SOA record, or is too large, is rejected', async () => {
  await assert.rejects(from(soa(2) + 'a A 192.0.2.2\n'), /no reply/);
  await assert.rejects(from(soa(2) + 'a A 192.0.2.2\n', null), /no reply/);
  const large = Array.from({ length: 60 }, (_, i) => `h${i} TXT "${'x'.repeat(200)}"\n`).join('');
  await assert.rejects(from(soa(2) + large + soa(2)), /needs more than 10000 bytes/);
});

test('endless messages with few or no records count with their whole size', async () => {
  const endless =
    (next: (id: number) => Buffer) =>
    (socket: Socket, id: number): void => {
      const many = Buffer.concat(Array.from({ length: 50 }, () => next(id)));
      const write = (): void => void socket.write(many, () => socket.writable && write());
      write();
    };
  const a = { name: 'a.', type: TYPE.A, class: 1 };
  const kinds = [
    (id: number) => framed(id, ''),
    (id: number) => framed(id, '', { question: Array.from({ length: 500 }, () => a) }),
    (id: number) =>
      framed(id, '@ NS ns.x.\n', {
        authority: Array.from({ length: 500 }, () => ({
          ...a,
          ttl: 0,
          data: { address: '10.0.0.1' },
        })),
      }),
  ];
  for (const kind of kinds)
    await assert.rejects(from(soa(2), null, endless(kind), 20_000), /needs more than 20000 bytes/);
});

test('a version that is not newer than the known one ends a transfer at once', async () => {
  for (const serial of [1, 0]) {
    const found = await from(soa(serial) + 'a A 192.0.2.2\n');
    assert.equal(found.packed, null);
    assert.equal(found.serial, serial);
  }
});

test('differences of more than a hundred thousand records are rejected, because the whole zone takes less memory', async () => {
  const many = (socket: Socket, id: number): void => {
    const one = framed(id, 'h A 192.0.2.7\n'.repeat(500));
    for (let i = 0; i < 101_000; i += 500) socket.write(one);
  };
  await assert.rejects(
    from(soa(2) + soa(1) + soa(2), old, many, 1e9),
    /differences of more than 100000 records/,
  );
});

test('a zone with a name that has more than 65536 records is rejected', async () => {
  const many = (socket: Socket, id: number): void => {
    const one = framed(id, 'www A 192.0.2.7\n'.repeat(512));
    for (let i = 0; i < 129; i++) socket.write(one);
  };
  await assert.rejects(
    from(soa(2), null, many, 1e9),
    /www\.example\.org\. has more than 65536 records/,
  );
});

test("a small difference is merged into a large zone in slices, without delaying the thread's other work", async () => {
  const zone = parseName(origin);
  const builder = new ZoneBuilder(zone);
  const small = new ZoneData(old!);
  const at = small.soa();
  builder.add(zone, TYPE.SOA, 60, small.data.slice(at, at + small.value));
  const hosts = 300_000;
  for (let i = 0; i < hosts; i++) {
    const label = `h${(i * 7919) % hosts}`;
    builder.add(
      Buffer.concat([Buffer.of(label.length), Buffer.from(label), zone]),
      TYPE.A,
      60,
      Uint8Array.of(10, 0, 0, 1),
    );
  }
  const large = builder.pack();
  let looks = 0;
  const clock = {
    ...systemClock,
    now() {
      looks++;
      return systemClock.now();
    },
  };
  const text = soa(2) + soa(1) + soa(2) + 'new A 192.0.2.3\n' + soa(2);
  const found = await from(text, large, undefined, undefined, undefined, clock);
  assert.equal(found.packed!.records, hosts + 2);
  // Work in slices checks the clock wherever other work could run. changed-zone.test.ts tests that the steps in between
  // are small.
  assert.ok(looks > hosts / 0x4000, `${looks} looks at the clock`);
});

test('memory of processed transfer messages is collected every few megabytes', async (t) => {
  const collections: unknown[] = [];
  Object.assign(globalThis, { gc: (how: unknown) => collections.push(how) });
  t.after(() => Reflect.deleteProperty(globalThis, 'gc'));
  const text = `t TXT "${'x'.repeat(250)}"\n`;
  const endless = (socket: Socket, id: number): void => {
    const message = framed(id, text.repeat(200));
    const send = (): void => void (socket.destroyed || socket.write(message, send));
    send();
  };
  await assert.rejects(from('@ SOA a a 1 2 3 4 5\n@ NS a', null, endless, 9_000_000), /bytes/);
  assert.equal(collections.length, 2);
});
