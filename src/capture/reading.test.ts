import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { dnsMessage, linked, pcapFile, udpPacket } from '../../test/kit/packets.ts';
import { CONTROL, writeControl } from '../wire/frame-stream.ts';
import { openStream } from './input.ts';
import { LINK } from './packets/frame.ts';
import { Remarks } from './packets/remarks.ts';
import { Reading } from './reading.ts';

/** Reads a capture that comes through a pipe. */
async function read(file: Uint8Array): Promise<Reading> {
  const reading = new Reading({});
  await reading.readWhole(await openStream('it', Readable.from([file]), new Remarks()));
  return reading;
}

const remarksOf = ({ remarks }: Reading): readonly string[] => remarks.list.map(({ text }) => text);

test('one packet with the time of another year does not make a capture of a second last for years', async () => {
  const packets = [0, 500, 56 * 365 * 24 * 3600_000, 1000].map((ms, at) => {
    const ends = { from: '10.0.0.1', fromPort: 4000 + at, to: '10.0.0.10', toPort: 53 };
    const message = dnsMessage('www.example.', 'A', { id: at });
    return { timeMs: 1.7e12 + ms, bytes: linked(udpPacket(ends, message), LINK.ETHERNET) };
  });
  const reading = await read(pcapFile(LINK.ETHERNET, packets));
  const { firstMs, lastMs, queries } = reading.totals;
  assert.deepEqual([lastMs - firstMs, queries], [1000, 3]);
  assert.deepEqual(remarksOf(reading), [
    'the time of a packet is far from that of all around it: it was passed over',
  ]);
});

test('what a stream calls itself reaches no terminal as it came', async () => {
  const reading = await read(writeControl(CONTROL.START, ['protobuf:\u001b]0;mine\u0007']));
  assert.deepEqual(remarksOf(reading), ['a stream of protobuf:\\x1b]0;mine\\x07, not of dnstap']);
});
