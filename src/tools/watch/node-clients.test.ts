import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseAddress } from '../../server/base/ip.ts';
import { NodeClients } from './node-clients.ts';

const PHYSICAL = 2;
const POD = 5;
const BRIDGE = 7;
const sides = new Map([
  [PHYSICAL, 'outside'],
  [POD, 'inside'],
] as const);

/** A UDP packet between these endpoints. */
function packet(from: string, fromPort: number, to: string, toPort: number): Uint8Array {
  const [source, target] = [parseAddress(from)!, parseAddress(to)!];
  const isIpv4 = source.length === 4;
  const header = isIpv4 ? 20 : 40;
  const bytes = new Uint8Array(header + 8);
  bytes[0] = isIpv4 ? 0x45 : 0x60;
  bytes[isIpv4 ? 9 : 6] = 17;
  bytes.set(source, isIpv4 ? 12 : 8);
  bytes.set(target, (isIpv4 ? 12 : 8) + source.length);
  new DataView(bytes.buffer).setUint16(header, fromPort);
  new DataView(bytes.buffer).setUint16(header + 2, toPort);
  return bytes;
}

/** True if a packet is shown that arrives at an interface or leaves through it. */
const taker =
  (clients: NodeClients) =>
  (bytes: Uint8Array, port: number, isOutgoing = false, timeMs = 0): boolean =>
    clients.isOwn(bytes, 0, bytes.length, timeMs, port, isOutgoing);

describe("a node's clients", () => {
  for (const [family, client, server] of [
    ['IPv4', '10.244.1.7', '10.244.2.3'],
    ['IPv6', 'fd00:1::7', 'fd00:2::3'],
  ] as const)
    test(`${family}: a query from outside is not shown on any interface, nor its reply`, () => {
      const take = taker(new NodeClients([53], sides));
      const query = packet(client, 40_000, server, 53);
      const reply = packet(server, 53, client, 40_000);
      assert.deepEqual(
        [
          take(query, PHYSICAL),
          take(query, BRIDGE, true),
          take(query, POD, true),
          take(reply, POD),
          take(reply, PHYSICAL, true),
        ],
        [false, false, false, false, false],
      );
    });

  test('a query from a pod is shown all along its path, and so is its reply from another node', () => {
    const take = taker(new NodeClients([53], sides));
    const query = packet('10.244.1.7', 40_000, '10.244.2.3', 53);
    const reply = packet('10.244.2.3', 53, '10.244.1.7', 40_000);
    assert.deepEqual(
      [
        take(query, POD),
        take(query, PHYSICAL, true),
        take(reply, PHYSICAL),
        take(reply, POD, true),
      ],
      [true, true, true, true],
    );
  });

  test('a query from the node itself is shown', () => {
    const take = taker(new NodeClients([53], sides));
    assert.ok(take(packet('192.0.2.1', 40_000, '10.244.2.3', 53), PHYSICAL, true));
  });

  test('an address of another node that a pod of this node gets is shown from its first query', () => {
    const take = taker(new NodeClients([53], sides));
    const query = packet('10.244.1.7', 40_000, '10.244.2.3', 53);
    assert.ok(!take(query, PHYSICAL));
    assert.ok(take(query, POD));
  });

  test('another node is forgotten after a minute of silence', () => {
    const take = taker(new NodeClients([53], sides));
    take(packet('192.0.2.2', 40_000, '10.244.2.3', 53), PHYSICAL);
    const own = packet('192.0.2.2', 40_001, '10.244.2.3', 53);
    assert.ok(!take(own, BRIDGE, true, 59_000));
    assert.ok(take(own, BRIDGE, true, 61_000));
  });

  test('packets without ports and of other services are shown', () => {
    const take = taker(new NodeClients([53], sides));
    const part = packet('10.244.1.7', 53, '10.244.2.3', 53);
    part[7] = 185;
    const unreachable = packet('10.244.1.7', 0, '10.244.2.3', 0);
    unreachable[9] = 1;
    const web = packet('10.244.1.7', 40_000, '10.244.2.3', 443);
    for (const each of [part, unreachable, web]) assert.ok(take(each, PHYSICAL));
    assert.ok(take(Uint8Array.of(0x45), PHYSICAL));
  });

  test('its memory is bounded', () => {
    const clients = new NodeClients([53], sides);
    const take = taker(clients);
    for (let i = 0; i < 70_000; i++)
      take(packet(`10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`, 4000, '10.244.2.3', 53), PHYSICAL);
    // The first ones were discarded, while the last ones are still there.
    assert.ok(take(packet('10.0.0.1', 4000, '10.244.2.3', 53), BRIDGE, true));
    assert.ok(!take(packet('10.1.17.1', 4000, '10.244.2.3', 53), BRIDGE, true));
  });
});
