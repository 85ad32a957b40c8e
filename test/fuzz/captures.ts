/**
 * Fuzzes captures: `node test/fuzz/captures.ts [--count N] [--seconds N] [--seed N]`. Takes packets from
 * `test/captures/`, shuffles, repeats, drops and damages them, and passes the file to the reader and to doctor. The
 * guarantees:
 *
 * - any file is read, and any traffic is diagnosed, without an exception.
 * - the same file gives the same diagnosis.
 * - no file takes more than some seconds of CPU time, and memory stays bounded.
 *
 * At the first violation it exits with status 1, and prints the seed and the file's number.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { seededRandom, type Random } from '../../src/server/base/random.ts';
import { usualPorts, Reading } from '../../src/tools/capture/read/reading.ts';
import { isPcapng } from '../../src/tools/capture/read/packets/pcapng.ts';
import type { Diagnosis } from '../../src/tools/doctor/diagnosis.ts';
import { Examination } from '../../src/tools/doctor/examination.ts';
import { pcapFile, pcapngFile, type Captured } from '../kit/packets.ts';
import { pick } from '../kit/pick.ts';
import { settledMemory } from '../kit/settled-memory.ts';
import { checkGrowth, runFuzzer } from './campaign.ts';
import { damage } from './mutate.ts';

export interface CaptureFuzzReport {
  files: number;
  packets: number;
  exchanges: number;
  findings: number;
  /** The CPU time of the slowest file. */
  slowestMs: number;
}

/** The packets of a recorded capture, and the link type of their headers. */
interface Recorded {
  readonly link: number;
  readonly packets: readonly Captured[];
}

/** Packets in a file. More would only be slower. */
const PACKETS_MAX = 300;
/** CPU time for a file, in milliseconds. A usual one takes 20. */
const FILE_MS_MAX = 5000;
const GROWTH_MAX = 150 * 2 ** 20;
/** Memory is measured from this file on. */
const WARM_UP = 50;
/** One file in this many is diagnosed twice. */
const TWICE = 8;
const MICROSECOND_PCAP = 0xa1b2c3d4;

/**
 * Runs until `count` files or `seconds` have passed.
 * @throws an error that names the seed and the file's number
 */
export async function fuzzCaptures(
  seed: number,
  count: number,
  seconds: number,
): Promise<CaptureFuzzReport> {
  const random = seededRandom(seed);
  const recorded = recordedCaptures();
  const report = { files: 0, packets: 0, exchanges: 0, findings: 0, slowestMs: 0 };
  const until = performance.now() + seconds * 1000;
  let early: number | null = null;
  for (; report.files < count && performance.now() < until; report.files++) {
    const file = makeFile(recorded, random);
    const before = process.threadCpuUsage();
    try {
      const { diagnosis, frames, exchanges } = await diagnose(file);
      report.packets += frames;
      report.exchanges += exchanges;
      report.findings += diagnosis.findings.length;
      if (report.files % TWICE === 0)
        assert.deepEqual(
          JSON.stringify((await diagnose(file)).diagnosis),
          JSON.stringify(diagnosis),
        );
      const { user, system } = process.threadCpuUsage(before);
      report.slowestMs = Math.max(report.slowestMs, (user + system) / 1000);
      assert.ok(report.slowestMs < FILE_MS_MAX, `a file took ${report.slowestMs} ms`);
      if (report.files === WARM_UP) early = await settledMemory();
    } catch (error) {
      throw new Error(
        `seed ${seed}, file ${report.files} (node test/fuzz/captures.ts --seed ${seed} --count ${report.files + 1})`,
        { cause: error },
      );
    }
  }
  await checkGrowth(early, GROWTH_MAX);
  return report;
}

async function diagnose(
  file: Uint8Array,
): Promise<{ readonly diagnosis: Diagnosis; readonly frames: number; readonly exchanges: number }> {
  const examination = new Examination();
  let frames = 0;
  const events = { ...examination.events, frame: () => void frames++ };
  const reading = new Reading(events, usualPorts, examination.extent);
  await reading.read({
    name: 'fuzz',
    format: isPcapng(file) ? 'pcapng' : 'pcap',
    size: file.length,
    chunks: inChunks(file),
    taken: () => file.length,
    close: () => undefined,
  });
  reading.end();
  examination.noteUnread(reading);
  return { diagnosis: examination.diagnosis(), frames, exchanges: reading.totals.exchanges };
}

/** Chunks end in the middle of packets. */
async function* inChunks(file: Uint8Array): AsyncIterable<Uint8Array> {
  for (let at = 0; at < file.length; at += 1000) yield file.subarray(at, at + 1000);
}

/** Packets from one capture, sometimes followed by some from another, with changes, as a file. */
function makeFile(recorded: readonly Recorded[], random: Random): Uint8Array {
  const { link, packets } = pick(random, recorded);
  let chosen = section(packets, random);
  if (random.integer(4) === 0) {
    const alike = recorded.filter((each) => each.link === link);
    const other = pick(random, alike);
    chosen = [...chosen, ...section(other.packets, random)];
  }
  const changes = random.integer(12);
  for (let n = 0; n < changes; n++) chosen = changed(chosen, random);
  const file = random.integer(2) === 0 ? pcapFile(link, chosen) : pcapngFile(link, 1, chosen);
  if (random.integer(3) > 0) return file;
  return Uint8Array.from(damage([...file], [file], random));
}

function section(packets: readonly Captured[], random: Random): readonly Captured[] {
  const from = random.integer(packets.length);
  return packets.slice(from, from + 1 + random.integer(PACKETS_MAX));
}

/** Damages, drops, repeats, moves or delays one or more packets. */
function changed(packets: readonly Captured[], random: Random): readonly Captured[] {
  const at = random.integer(packets.length);
  const one = packets[at];
  if (one === undefined) return packets;
  const delayMs = pick(random, [0.01, 1, 40, 1000, 5000, 86_400_000, -2000]);
  switch (random.integer(6)) {
    case 0:
      return packets.with(at, {
        ...one,
        bytes: Uint8Array.from(damage([...one.bytes], [pick(random, packets).bytes], random)),
      });
    case 1:
      return packets.toSpliced(at, 1 + random.integer(5));
    case 2:
      return packets.toSpliced(at, 0, pick(random, packets));
    case 3:
      return packets.with(at, { ...one, timeMs: one.timeMs + delayMs });
    case 4:
      return [
        ...packets.slice(0, at),
        ...packets.slice(at).map((each) => ({ ...each, timeMs: each.timeMs + delayMs })),
      ];
    default:
      // A type of packet is lost for the rest.
      return packets.filter(({ bytes }, index) => index < at || bytes.length !== one.bytes.length);
  }
}

function recordedCaptures(): readonly Recorded[] {
  const directory = new URL('../captures/', import.meta.url);
  return readdirSync(directory)
    .filter((name) => name.endsWith('.pcap.gz'))
    .toSorted()
    .map((name) => packetsOf(gunzipSync(readFileSync(new URL(name, directory)))))
    .filter(({ packets }) => packets.length > 0);
}

/** Reads a well-formed little-endian capture. */
function packetsOf(file: Buffer): Recorded {
  if (file.readUInt32LE(0) !== MICROSECOND_PCAP) return { link: 0, packets: [] };
  const packets: Captured[] = [];
  for (let at = 24; at < file.length;) {
    const length = file.readUInt32LE(at + 8);
    const timeMs = file.readUInt32LE(at) * 1000 + file.readUInt32LE(at + 4) / 1000;
    packets.push({ timeMs, bytes: file.subarray(at + 16, at + 16 + length) });
    at += 16 + length;
  }
  return { link: file.readUInt32LE(20), packets };
}

if (import.meta.main) await runFuzzer(fuzzCaptures);
