/**
 * Reading a capture of a million packets: `node bench/capture.ts`. ndots pairs queries and replies, groups them to lookups and looks for
 * findings; tcpdump and tshark print a line for each packet, by turns in one run. The same three times as long shows whether memory
 * grows with the capture.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hasProgram } from '../test/kit/real-resolver.ts';
import {
  back,
  dnsMessage,
  linked,
  pcapFile,
  udpPacket,
  type Captured,
} from '../test/kit/packets.ts';
import { LINK } from '../src/capture/packets/frame.ts';
import { beside, figure } from './kit/figures.ts';
import { rounds, smoke } from './kit/peers.ts';

const PACKETS = smoke ? 20_000 : 1_000_000;
const counted = (times: number): string => `${(times * PACKETS).toLocaleString('en-US')} packets`;
const domains = ['shop.svc.cluster.local.', 'svc.cluster.local.', 'cluster.local.', ''];
const bin = new URL('../bin/ndots', import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), 'ndots-bench-'));

/** Writes lookups of ten thousand pods along a search path of three domains. */
function write(path: string, packets: number): void {
  const fd = openSync(path, 'w');
  writeSync(fd, pcapFile(LINK.ETHERNET, []));
  let timeMs = 1.7e12;
  let batch: Captured[] = [];
  for (let count = 0, lookup = 0; count < packets; lookup++) {
    const stem = `api${lookup % 3000}.example.com.`;
    domains.forEach((domain, step) => {
      const from = `10.244.${lookup % 50}.${1 + (lookup % 200)}`;
      const ends = {
        from,
        fromPort: 1024 + ((lookup * 4 + step) % 60_000),
        to: '10.96.0.10',
        toPort: 53,
      };
      for (const [type, id] of [
        ['A', 0],
        ['AAAA', 300],
      ] as const) {
        const question = { id: (lookup * 7 + step + id) & 0xffff };
        const rcode = domain === '' ? 0 : 3;
        batch.push({
          timeMs,
          bytes: udpPacket(ends, dnsMessage(stem + domain, type, question), (count & 0xffff) + 1),
        });
        batch.push({
          timeMs: timeMs + 0.4,
          bytes: udpPacket(
            back(ends),
            dnsMessage(stem + domain, type, { ...question, reply: true, rcode }),
            (count & 0xffff) + 2,
          ),
        });
        count += 2;
      }
      timeMs += 0.6;
    });
    if (batch.length < 10_000) continue;
    flush();
  }
  flush();
  closeSync(fd);

  function flush(): void {
    batch.sort((one, other) => one.timeMs - other.timeMs);
    const frames = batch.map(({ timeMs: at, bytes }) => ({
      timeMs: at,
      bytes: linked(bytes, LINK.ETHERNET),
    }));
    writeSync(fd, pcapFile(LINK.ETHERNET, frames).subarray(24));
    batch = [];
  }
}

/** The same three times, each a while after the one before. */
function writeLonger(from: string, to: string): void {
  const bytes = readFileSync(from);
  const fd = openSync(to, 'w');
  writeSync(fd, bytes, 0, 24);
  for (let turn = 0; turn < rounds; turn++) {
    writeSync(fd, bytes, 24);
    for (let at = 24; at < bytes.length; at += 16 + bytes.readUInt32LE(at + 8))
      bytes.writeUInt32LE(bytes.readUInt32LE(at) + 600, at);
  }
  closeSync(fd);
}

interface Spent {
  readonly seconds: number;
  /** Of the processor, in the program. */
  readonly cpuSeconds: number;
  readonly mebibytes: number;
}

function run(program: string, ...words: string[]): Spent {
  const before = performance.now();
  const timed = spawnSync('/usr/bin/time', ['-f', '%U %S %M', program, ...words], {
    stdio: ['ignore', 'ignore', 'pipe'],
    encoding: 'utf8',
  });
  const seconds = (performance.now() - before) / 1000;
  const [user = 0, system = 0, kibibytes = 0] = timed.stderr
    .trimEnd()
    .split('\n')
    .at(-1)!
    .split(' ')
    .map(Number);
  return { seconds, cpuSeconds: user + system, mebibytes: kibibytes / 1024 };
}

const median = (list: readonly number[]): number =>
  list.toSorted((a, b) => a - b)[list.length >> 1]!;

try {
  const one = join(folder, 'one.pcap');
  const three = join(folder, 'three.pcap');
  write(one, PACKETS);
  writeLonger(one, three);
  const peers = ['tcpdump', 'tshark'].filter(hasProgram);
  for (const peer of peers)
    beside(
      peer,
      (spawnSync(peer, ['--version'], { encoding: 'utf8' }).stdout || '').split('\n')[0]!,
    );
  const spent = {
    capture: [] as Spent[],
    doctor: [] as Spent[],
    tcpdump: [] as Spent[],
    tshark: [] as Spent[],
  };
  for (let turn = 0; turn < rounds; turn++) {
    spent.capture.push(run(bin, 'capture', one, '-o', 'none', '-q'));
    spent.doctor.push(run(bin, 'doctor', one, '-q'));
    if (peers.includes('tcpdump')) spent.tcpdump.push(run('tcpdump', '-nr', one));
  }
  if (peers.includes('tshark'))
    spent.tshark.push(run('tshark', '-r', one, '-T', 'fields', '-e', 'dns.id', '-e', 'dns.time'));
  for (const verb of ['capture', 'doctor'] as const) {
    figure(`${verb}: ${counted(1)}`, median(spent[verb].map(({ seconds }) => seconds)), 's', {
      atMost: 10,
    });
    figure(`${verb}: processor time`, median(spent[verb].map(({ cpuSeconds }) => cpuSeconds)), 's');
    figure(`${verb}: memory`, Math.max(...spent[verb].map(({ mebibytes }) => mebibytes)), 'MiB', {
      atMost: 200,
    });
    for (const peer of ['tcpdump', 'tshark'] as const)
      if (spent[peer].length > 0)
        figure(
          `${verb}: processor time, of ${peer}’s`,
          median(spent[verb].map(({ cpuSeconds }) => cpuSeconds)) /
            median(spent[peer].map(({ cpuSeconds }) => cpuSeconds)),
        );
    const longer = run(bin, verb, three, '-q', ...(verb === 'capture' ? ['-o', 'none'] : []));
    figure(
      `${verb}: memory of ${counted(3)}, of that of ${counted(1)}`,
      longer.mebibytes / median(spent[verb].map(({ mebibytes }) => mebibytes)),
      '',
      { atMost: 1.15 },
    );
  }
} finally {
  rmSync(folder, { recursive: true });
}
