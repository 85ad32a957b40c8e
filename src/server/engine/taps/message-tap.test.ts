import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addressRecord, dnsMessage } from '../../../../test/kit/packets.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { Query } from '../../transport/query.ts';
import { readDnstap, TAP } from '../../wire/dnstap.ts';
import { readMessage } from '../../wire/message.ts';
import type { EndedExchange } from '../contract/ports.ts';
import { Tap } from './message-tap.ts';
import { Frames } from './tap-frames.ts';

test('a reply from an upstream has the id of the query in the tap, because readers pair them by id', () => {
  const frames = new Frames(new VirtualClock());
  const tap = new Tap(new Uint8Array(0), true, '', new VirtualClock());
  tap.use(frames.add(4096));
  const asked = dnsMessage('a.example.', 'A', { id: 0x1234 });
  const query = new Query();
  assert.equal(query.read(asked, 0, asked.length), 'serve');
  // The upstream query has a random id of its own, so that replies are hard to forge.
  const reply = dnsMessage('a.example.', 'A', {
    ...{ reply: true, id: 0xfedc },
    answer: [addressRecord('a.example.', '192.0.2.1')],
  });
  const before = Uint8Array.from(reply);
  const exchange: EndedExchange = {
    ...{ query, host: '192.0.2.53', port: 53, sentAt: 0 },
    proto: 'udp',
    ...{ reply, start: 0, end: reply.length },
  };
  tap.exchangedBoth(exchange);
  tap.exchanged(exchange);
  const { bytes } = frames.take()!;
  const ids: [number, string, number][] = [];
  for (let at = 0; at < bytes.length; at += 4 + bytes.readUInt32BE(at)) {
    const { type, queryMessage, responseMessage } = readDnstap(
      bytes.subarray(at + 4, at + 4 + bytes.readUInt32BE(at)),
    );
    if (queryMessage !== null) ids.push([type, 'query', readMessage(queryMessage).id]);
    if (responseMessage !== null) ids.push([type, 'reply', readMessage(responseMessage).id]);
  }
  assert.deepEqual(ids, [
    [TAP.FORWARDER_RESPONSE, 'query', 0x1234],
    [TAP.FORWARDER_RESPONSE, 'reply', 0x1234],
    [TAP.FORWARDER_QUERY, 'query', 0x1234],
    [TAP.FORWARDER_RESPONSE, 'reply', 0x1234],
  ]);
  assert.deepEqual(reply, before, 'the reply itself is unchanged');
});
