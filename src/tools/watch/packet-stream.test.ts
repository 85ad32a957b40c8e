import assert from 'node:assert/strict';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { describe, test } from 'node:test';
import { secretGate } from '../../server/base/http-access.ts';
import { Problem } from '../../server/base/problem.ts';
import { VirtualClock } from '../../server/base/virtual-clock.ts';
import type { TakePacket } from '../../server/runtime/packet-socket.ts';
import { PcapngReader } from '../capture/read/packets/pcapng.ts';
import { Remarks } from '../capture/read/packets/remarks.ts';
import { PacketStream } from './packet-stream.ts';

const TOKEN = 'a-token-that-is-long-enough';

/** A request with the token, and the reply to it on an open connection. */
function exchange(): [IncomingMessage, ServerResponse] {
  const request = new IncomingMessage(new Socket());
  request.socket.on('error', () => undefined);
  request.method = 'GET';
  request.headers = { authorization: `Bearer ${TOKEN}` };
  const response = new ServerResponse(request);
  response.assignSocket(request.socket);
  return [request, response];
}

interface Read {
  readonly packets: string[];
  readonly losses: number[];
  readonly remarks: Remarks;
  close(): void;
}

/** A stream whose capture is controlled by the test. */
class World {
  readonly clock: VirtualClock = new VirtualClock();
  take: TakePacket | null = null;
  dropped = 0;
  isGone = false;
  readonly stream: PacketStream = new PacketStream({
    clock: this.clock,
    version: '1.2.3',
    open: (take) => {
      this.take = take;
      return {
        dropped: () => this.dropped,
        isGone: () => this.isGone,
        stop: () => {
          this.take = null;
        },
      };
    },
  });

  packet(text: string, port = 3): void {
    const bytes = Buffer.from(`${'.'.repeat(7)}${text}`);
    this.take!(bytes, 7, bytes.length, 1_700_000_000_000.25, port, false);
  }

  /** A reader whose connection accepts bytes while `stalled` is false. */
  read(stalled = (): boolean => false): Read {
    const socket = new PassThrough({ highWaterMark: 1 });
    const [request, response] = exchange();
    const packets: string[] = [];
    const losses: number[] = [];
    const remarks = new Remarks();
    const reader = new PcapngReader(({ bytes, start, end, port }) => {
      packets.push(`${Buffer.from(bytes.subarray(start, end)).toString()}@${port}`);
    }, remarks);
    reader.dropped = (count) => losses.push(count);
    response.write = ((bytes: Uint8Array, done: () => void) => {
      reader.push(Uint8Array.from(bytes));
      done();
      return true;
    }) as typeof response.write;
    Object.defineProperty(response, 'writableLength', {
      get: () => (stalled() ? 64 * 1024 * 1024 : 0),
    });
    this.stream.serve(request, response, { gate: secretGate(() => TOKEN), identity: 'node7' });
    return {
      packets,
      losses,
      remarks,
      close: () => {
        response.emit('close');
        socket.destroy();
      },
    };
  }
}

describe('packets for readers', () => {
  test('a capture begins with the first reader and stops with the last', () => {
    const world = new World();
    assert.equal(world.take, null);
    const [first, second] = [world.read(), world.read()];
    assert.notEqual(world.take, null);
    first.close();
    assert.notEqual(world.take, null);
    second.close();
    assert.equal(world.take, null);
  });

  test('each reader gets the packets since it connected, with their interfaces', async () => {
    const world = new World();
    const first = world.read();
    world.packet('one', 3);
    const second = world.read();
    world.packet('two', 4);
    world.packet('three', 3);
    await world.clock.advance(100);
    assert.deepEqual(first.packets, ['one@1', 'two@2', 'three@1']);
    assert.deepEqual(second.packets, ['two@2', 'three@1']);
    assert.deepEqual([...first.remarks.list, ...second.remarks.list], []);
  });

  test('a reader without room misses packets, learns how many, and continues with all interfaces', async () => {
    const world = new World();
    let isStalled = false;
    const slow = world.read(() => isStalled);
    const fast = world.read();
    isStalled = true;
    for (let i = 0; i < 3; i++) world.packet('missed', 9);
    await world.clock.advance(100);
    isStalled = false;
    world.packet('seen', 9);
    await world.clock.advance(5000);
    assert.equal(fast.packets.length, 4);
    assert.deepEqual(
      slow.packets.map((each) => each.split('@')[0]),
      ['seen'],
    );
    assert.deepEqual(slow.remarks.list, []);
    assert.deepEqual([slow.losses.at(-1), fast.losses.at(-1), world.stream.missed], [3, 0, 3]);
  });

  test('packets that the kernel dropped count as losses for the readers connected at the time', async () => {
    const world = new World();
    const first = world.read();
    world.dropped = 7;
    const second = world.read();
    await world.clock.advance(5000);
    assert.deepEqual([first.losses.at(-1), second.losses.at(-1)], [7, 0]);
  });

  test('a capture whose interface is gone ends the streams, so that readers do not wait for nothing', async () => {
    const world = new World();
    world.read();
    await world.clock.advance(10_000);
    assert.equal(world.stream.readers, 1);
    world.isGone = true;
    await world.clock.advance(2000);
    assert.deepEqual([world.stream.readers, world.take], [0, null]);
  });

  test('a capture that cannot start leaves no reader behind', () => {
    const stream = new PacketStream({
      clock: new VirtualClock(),
      version: '1.2.3',
      open: () => {
        throw new Problem({ code: 'no-interface', text: 'there is no interface eth9' });
      },
    });
    const [request, response] = exchange();
    stream.serve(request, response, { gate: secretGate(() => TOKEN), identity: 'node7' });
    assert.equal(response.statusCode, 503);
    assert.equal(stream.readers, 0);
  });
});
