/**
 * The live model at 20 000 packets per second: `node bench/live-model.ts`. Reads a busy node's capture from memory.
 * Capture alone (decoding, pairing, grouping into lookups) alternates with the live model, which does all its counting
 * and applies doctor's rules every three seconds. Reports the CPU time per packet, and per second at 20 000 packets.
 * Packet timestamps correspond to that rate.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Reading } from '../src/tools/capture/read/reading.ts';
import { LiveModel } from '../src/tools/watch/live-model.ts';
import { writeNodeCapture } from '../test/kit/node-captures.ts';
import { figure, smoke } from './kit/figures.ts';
import { rounds } from './kit/peers.ts';

const RATE = 20_000;
const PACKETS = smoke ? 20_000 : 1_200_000;
/** The number of packets between two updates of the model's clock, which are 250 ms apart. */
const STEP = RATE / 4;
const START_MS = Date.UTC(2026, 10, 1);
const directory = mkdtempSync(join(tmpdir(), 'ndots-bench-'));
const median = (list: readonly number[]): number =>
  list.toSorted((one, other) => one - other)[list.length >> 1]!;

/** The offsets of the packets in the file, without their link headers. */
function packetsOf(bytes: Buffer): Int32Array {
  const places: number[] = [];
  for (let at = 24; at < bytes.length; at += 16 + bytes.readUInt32LE(at + 8))
    places.push(at + 16 + SLL2_BYTES, at + 16 + bytes.readUInt32LE(at + 8));
  return Int32Array.from(places);
}

/** The header size of Linux cooked captures, version 2. */
const SLL2_BYTES = 20;

/** The CPU time per packet in microseconds. */
function spent(run: () => void): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / PACKETS;
}

try {
  const path = join(directory, 'node.pcap');
  writeNodeCapture(path, { packets: PACKETS, trouble: 'none', sightings: 1 });
  const bytes = readFileSync(path);
  const places = packetsOf(bytes);
  const feed = (reading: Reading, step: (nowMs: number) => void): void => {
    for (let at = 0; at < places.length; at += 2) {
      const timeMs = START_MS + (at / 2 / RATE) * 1000;
      if ((at / 2) % STEP === 0) step(timeMs);
      reading.takeNetwork(bytes, places[at]!, places[at + 1]!, timeMs, 0);
    }
  };
  const alone: number[] = [];
  const model: number[] = [];
  let memory = 0;
  let used = 0;
  for (let round = 0; round < rounds; round++) {
    alone.push(spent(() => feed(new Reading({ ended() {}, lookup() {} }), () => undefined)));
    const live = new LiveModel();
    const { reading } = live.open('a capture');
    model.push(spent(() => feed(reading, (nowMs) => live.advance(nowMs))));
    memory = Math.max(memory, process.memoryUsage().rss / 2 ** 20 - bytes.length / 2 ** 20);
    used = live.memory.usedBytes / 2 ** 20;
  }
  const [one, all] = [median(alone), median(model)];
  figure('capture: CPU of a packet', one, 'µs');
  figure('live model: CPU of a packet', all, 'µs');
  figure('live model : capture, CPU', all / one);
  figure('live model: of one CPU, at 20 000 packets a second', (all * RATE) / 1e4, '%', {
    atMost: 50,
  });
  figure('live model: memory of the process, without the capture', memory, 'MiB');
  figure('live model: memory by its own account', used, 'MiB');
} finally {
  rmSync(directory, { recursive: true });
}
