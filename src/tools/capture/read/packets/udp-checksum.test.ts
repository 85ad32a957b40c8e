import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checksummed, dnsMessage, udpPacket, type Ends } from '../../../../../test/kit/packets.ts';
import { emptyPacket, readIpv4, readIpv6 } from './ip-packet.ts';
import { hasWrongChecksum } from './udp-checksum.ts';

const ways: readonly Ends[] = [
  { from: '10.96.0.10', fromPort: 53, to: '10.244.1.7', toPort: 31_000 },
  { from: 'fd00:96::a', fromPort: 53, to: 'fd00:77::7', toPort: 31_001 },
];

function isWrong(bytes: Uint8Array, change?: (bytes: Uint8Array, at: number) => void): boolean {
  const packet = emptyPacket();
  const own = Uint8Array.from(bytes);
  const read = own[0]! >> 4 === 6 ? readIpv6 : readIpv4;
  assert.ok(read(own, 0, own.length, packet));
  change?.(own, packet.at);
  return hasWrongChecksum(packet, packet.end - packet.at);
}

describe('the checksum of a UDP datagram', () => {
  for (const way of ways)
    for (const name of ['a.example.', 'ab.example.']) {
      const bytes = checksummed(udpPacket(way, dnsMessage(name, 'A', { reply: true })));
      test(`from ${way.from}, ${bytes.length} bytes: it is correct`, () => {
        assert.equal(isWrong(bytes), false);
      });

      test(`from ${way.from}, ${bytes.length} bytes: one changed bit makes it wrong`, () => {
        const { length } = bytes;
        for (let at = length - 20; at < length; at++)
          assert.ok(
            isWrong(bytes, (own) => {
              own[at]! ^= 1;
            }),
            `byte ${at}`,
          );
      });

      test(`from ${way.from}, ${bytes.length} bytes: a checksum left to the network card is not wrong`, () => {
        const zero = udpPacket(way, dnsMessage(name, 'A', { reply: true }));
        assert.equal(isWrong(zero), false);
        const partial = checksummed(zero, 'partial');
        assert.equal(isWrong(partial), false);
      });
    }
});
