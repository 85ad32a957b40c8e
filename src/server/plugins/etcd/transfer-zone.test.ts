import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { readMessage } from '../../wire/message.ts';
import { parseName } from '../../wire/name.ts';
import { printRecord } from '../../wire/print.ts';
import { MessageWriter } from '../../wire/writer.ts';
import type { RecordStream, TransferSource } from '../../zone/transfer-source.ts';
import { EtcdReplica } from './replica.ts';
import { packService } from './skydns-service.ts';
import { etcdTransfers } from './transfer-zone.ts';

const zone = parseName('shop.test.');

interface Scene {
  readonly clock: VirtualClock;
  readonly replica: EtcdReplica;
  readonly source: TransferSource;
  readonly omitted: () => number;
  put(name: string, value: object): void;
  serial(serial: number): void;
}

/** A clock that advances by a quarter of a millisecond whenever it is read, which a transfer does after each key. */
class PassingClock extends VirtualClock {
  #looks = 0;

  override now(): number {
    return super.now() + this.#looks++ / 4;
  }
}

function scene(): Scene {
  const clock = new PassingClock();
  const replica = new EtcdReplica();
  let omitted = 0;
  const source = etcdTransfers({
    replica,
    zones: ['shop.test.'],
    clock,
    minLeaseTtl: 30,
    maxLeaseTtl: 86_400,
    omitted: { add: (amount) => void (omitted += amount) },
  });
  return {
    clock,
    replica,
    source,
    omitted: () => omitted,
    put(name, value) {
      const packed = packService(Buffer.from(JSON.stringify(value)), 0n);
      assert.ok(typeof packed === 'string');
      replica.apply([{ about: 'key', key: `/test/shop/${name}`, packed }]);
    },
    serial(serial) {
      replica.apply([{ about: 'state', listed: true, serial }]);
    },
  };
}

function linesOf(stream: RecordStream): string[] {
  const lines: string[] = [];
  const writer = new MessageWriter();
  for (let step = stream.next(); step !== 'end'; step = stream.next()) {
    if (step === 'pause') continue;
    writer.begin(1, 0);
    const before = writer.length;
    stream.write(writer);
    assert.ok(writer.length - before <= stream.size, 'a record is larger than it says');
    lines.push(...readMessage(writer.take()).answer.map(printRecord));
  }
  return lines;
}

const transfer = ({ source }: Scene): RecordStream => source.find(zone, zone.length)!.records();
const addresses = (lines: readonly string[]): number =>
  lines.filter((line) => /\sA\s/.test(line)).length;

test('nothing is transferred before everything has been listed, and names inside the zone never are', () => {
  const it = scene();
  it.put('web', { host: '10.0.0.1' });
  assert.equal(it.source.find(zone, zone.length), null);
  it.serial(7);
  assert.equal(it.source.find(zone, zone.length)?.serial, 7);
  const below = parseName('web.shop.test.');
  assert.equal(it.source.find(below, below.length), null);
});

test('a name that covers more than a thousand keys is omitted, and those below it are not', () => {
  const it = scene();
  for (let i = 0; i <= 1000; i++) it.put(`web/x${i}`, { host: '10.0.0.1' });
  it.serial(1);
  assert.equal(addresses(linesOf(transfer(it))), 1001);
  // The zone itself, and `web`.
  assert.equal(it.omitted(), 2);
});

test('a transfer in progress keeps the state at its start', () => {
  const it = scene();
  for (let i = 0; i < 20; i++) it.put(`host${i}`, { host: '10.0.0.1' });
  it.serial(1);
  const before = linesOf(transfer(it));
  const stream = transfer(it);
  stream.next();
  stream.next();
  for (let i = 0; i < 20; i++) {
    it.put(`new${i}`, { host: '10.0.0.2' });
    it.replica.apply([{ about: 'key', key: `/test/shop/host${i}`, packed: null }]);
  }
  assert.deepEqual(linesOf(stream), before.slice(2));
});

test('keys that differ only after a hyphen are distinguished: a-b sorts between a and the keys below a', () => {
  const it = scene();
  for (const name of ['a/x', 'a-b', 'a', 'a/c/d']) it.put(name, { host: '10.0.0.1' });
  it.serial(1);
  const owners = linesOf(transfer(it))
    .filter((line) => /\sA\s/.test(line))
    .map((line) => line.split(/\s/)[0]!);
  assert.deepEqual(owners.toSorted(), [
    'a-b.shop.test.',
    'a.shop.test.',
    'c.a.shop.test.',
    'd.c.a.shop.test.',
    'shop.test.',
    'x.a.shop.test.',
  ]);
});

test('a transfer yields after a millisecond or two, however expensive its names are', () => {
  const it = scene();
  for (let i = 0; i < 20_000; i++)
    it.put(`srv${Math.floor(i / 30)}/x${i}`, { host: `h${i}.shop.test`, port: 80 });
  it.serial(1);
  const stream = transfer(it);
  const writer = new MessageWriter();
  let [pauses, records, most] = [0, 0, 0];
  for (let step = stream.next(); step !== 'end'; step = stream.next()) {
    if (step === 'record') {
      writer.begin(1, 0);
      stream.write(writer);
      most = Math.max(most, ++records);
    } else [pauses, records] = [pauses + 1, 0];
  }
  // The transfer may pause after each key and each name above it. It never writes more than one name between two
  // pauses.
  assert.ok(pauses > 20_000 / 8, `${pauses} pauses`);
  assert.ok(most <= 8 * 30, `${most} records without a pause`);
});

test('other servers are notified of a zone at first, and of changes at most every five seconds', async () => {
  const it = scene();
  const told: number[] = [];
  it.serial(1);
  const end = it.source.watch(({ serial }) => told.push(serial));
  assert.deepEqual(told, [1]);
  for (let serial = 2; serial < 6; serial++) {
    it.serial(serial);
    await it.clock.advance(1000);
  }
  await it.clock.advance(10_000);
  assert.deepEqual(told, [1, 5]);
  end();
  it.serial(9);
  await it.clock.advance(10_000);
  assert.deepEqual(told, [1, 5]);
});
