import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import fc from 'fast-check';

import {
  StreamClient,
  UdpClient,
  answerOne,
  framed,
  listenerParts,
  queryBytes,
} from '../../../../test/kit/loopback.ts';
import { openListeners } from '../open.ts';
import { tcpListener } from './tcp.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('laws of the listeners', () => {
  test('a TCP client gets the same replies however it splits its bytes', async () => {
    const listener = tcpListener(listenerParts(answerOne));
    await listener.open();
    const count = 12;
    const bytes = Buffer.concat(
      Array.from({ length: count }, (_, i) =>
        framed(queryBytes(`${'x'.repeat(1 + i * 5)}.example.`, i)),
      ),
    );
    const cuts = fc.array(fc.integer({ min: 1, max: bytes.length - 1 }), { maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(cuts, async (at) => {
        const client = await StreamClient.open(listener.port);
        client.socket.setNoDelay(true);
        let from = 0;
        for (const to of [...at.toSorted((a, b) => a - b), bytes.length]) {
          client.socket.write(bytes.subarray(from, to));
          from = to;
          await turn();
        }
        for (let i = 0; i < count; i++) assert.equal((await client.next())?.readUInt16BE(0), i);
        client.close();
      }),
      { numRuns: 40 },
    );
    await listener.close(0);
  });

  for (const udpMode of ['auto', 'plain'] as const) {
    test(`the listener keeps serving whatever bytes arrive (UDP ${udpMode})`, async () => {
      const listener = openListeners(listenerParts(answerOne), udpMode);
      await listener.open();
      const udp = await UdpClient.open();
      const noise = fc.oneof(
        fc.uint8Array({ maxLength: 600 }),
        // Almost a query.
        fc.tuple(fc.nat(40), fc.nat(255)).map(([at, value]) => {
          const bytes = queryBytes('www.example.', 1, 1232);
          bytes[at % bytes.length] = value;
          return bytes;
        }),
      );
      await fc.assert(
        fc.asyncProperty(fc.array(noise, { minLength: 1, maxLength: 30 }), async (packets) => {
          const tcp = await StreamClient.open(listener.port);
          for (const bytes of packets) {
            udp.send(bytes, listener.port);
            tcp.send(bytes);
          }
          udp.send(queryBytes('still.here.', 0xbeef), listener.port);
          tcp.send(queryBytes('still.here.', 0xbeef));
          for (const next of [
            () => udp.next().then((got) => got?.bytes ?? null),
            () => tcp.next(),
          ]) {
            let got = await next();
            while (got !== null && !got.includes('still')) got = await next();
            assert.equal(got?.readUInt16BE(0), 0xbeef);
          }
          tcp.close();
        }),
        { numRuns: 60 },
      );
      udp.close();
      await listener.close(0);
    });
  }
});
