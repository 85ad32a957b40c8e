import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { test } from 'node:test';
import { inNetworkNamespace } from './network-namespace.ts';
import { PacketSocket } from './packet-socket.ts';

interface Seen {
  readonly text: string;
  readonly timeMs: number;
}

function open(device: string | null, ports: readonly number[]): PacketSocket | null {
  try {
    return new PacketSocket(device, ports);
  } catch (error) {
    if ((error as { code?: string }).code === 'EPERM') return null;
    throw error;
  }
}

test("packets to and from the filter's ports are seen once each on loopback, with timestamps, and no others", async (t) => {
  const socket = open('lo', [5399, 853]);
  if (socket === null) return t.skip('packet sockets are not allowed here');
  t.after(() => socket.close());
  const seen: Seen[] = [];
  socket.start((bytes, start, end, timeMs) => {
    const header = (bytes[start]! & 15) * 4;
    const version = bytes[start]! >> 4;
    const at = start + (version === 4 ? header : 40) + 8;
    seen.push({ text: Buffer.from(bytes.subarray(at, end)).toString('latin1'), timeMs });
  });
  const one = createSocket('udp4');
  const six = createSocket('udp6');
  t.after(() => {
    one.close();
    six.close();
  });
  const before = Date.now();
  one.bind(5399, '127.0.0.1');
  await once(one, 'listening');
  const other = createSocket('udp4');
  t.after(() => other.close());
  other.send('to', 5399, '127.0.0.1');
  other.send('past', 5400, '127.0.0.1');
  one.send('from', 5401, '127.0.0.1');
  six.send('six', 5399, '::1');
  six.send('six past', 5398, '::1');
  for (let wait = 0; wait < 200 && seen.filter(({ text }) => text.length < 5).length < 3; wait++)
    await new Promise((resolve) => setTimeout(resolve, 10));
  const texts = seen.map(({ text }) => text).filter((text) => /^(to|from|six)$/.test(text));
  assert.deepEqual(texts.toSorted(), ['from', 'six', 'to']);
  assert.ok(!seen.some(({ text }) => text.includes('past') && !text.includes('\u0000')));
  const after = Date.now();
  for (const { timeMs } of seen)
    assert.ok(timeMs >= before - 1000 && timeMs <= after + 1000, `${timeMs}`);
  assert.equal(socket.dropped, 0);
});

test('packets buffered in the kernel at the end are read before the socket is closed', async (t) => {
  const socket = open('lo', [5398]);
  if (socket === null) return t.skip('packet sockets are not allowed here');
  t.after(() => socket.close());
  const one = createSocket('udp4');
  t.after(() => one.close());
  for (let i = 0; i < 300; i++)
    await new Promise((resolve) => one.send(`waits ${i}`, 5398, '127.0.0.1', resolve));
  const seen = new Set<string>();
  socket.drain((bytes, start, end) => {
    const [text] =
      /waits \d+$/.exec(Buffer.from(bytes.subarray(start, end)).toString('latin1')) ?? [];
    // An ICMP error (port unreachable) contains the packet.
    if (text !== undefined) seen.add(text);
  });
  assert.equal(seen.size, 300);
  assert.equal(socket.dropped, 0);
});

test('a missing interface is ENODEV', (t) => {
  if (open(null, [53]) === null) return t.skip('packet sockets are not allowed here');
  assert.throws(() => new PacketSocket('nowhere0', [53]), { code: 'ENODEV' });
});

test('work in a network namespace returns to the original one', (t) => {
  let inner = 0;
  try {
    inner = inNetworkNamespace('/proc/self/ns/net', () => 7);
  } catch (error) {
    if ((error as { code?: string }).code === 'EPERM') return t.skip('not allowed here');
    throw error;
  }
  assert.equal(inner, 7);
  assert.throws(() => inNetworkNamespace('/nowhere/net', () => 1), { code: 'ENOENT' });
});
