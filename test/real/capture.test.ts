import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { capture } from '../../src/faces/cli/capture/capture.ts';
import type { ExchangeDocument } from '../../src/faces/cli/capture/capture-rows.ts';
import { LINK } from '../../src/tools/capture/read/packets/frame.ts';
import { seededRandom } from '../../src/server/base/random.ts';
import {
  addressRecord,
  back,
  dnsMessage,
  fragments,
  framed,
  linked,
  pcapFile,
  TCP,
  tcpPacket,
  udpPacket,
  type Captured,
  type Ends,
} from '../kit/packets.ts';
import { runCommand } from '../kit/trace-command.ts';

/** tshark and ndots must find the same exchanges in the same files. */

const directory = mkdtempSync(join(tmpdir(), 'capture-real-'));
after(() => rmSync(directory, { recursive: true }));
const missing =
  spawnSync('tshark', ['--version']).error === undefined ? false : 'tshark is not installed';

const rcodes = [0, 0, 3, 2, 5];

function traffic(seed: number): Captured[] {
  const random = seededRandom(seed);
  const packets: Captured[] = [];
  for (let i = 0; i < 60; i++) {
    const six = random.integer(3) === 0;
    const ends: Ends = {
      from: six ? `fd00::${random.integer(9) + 1}` : `10.244.0.${random.integer(200) + 1}`,
      fromPort: 1024 + random.integer(60_000),
      to: six ? 'fd00::aa' : '10.96.0.10',
      toPort: 53,
    };
    const id = random.integer(0x10000);
    const name = `host${random.integer(9)}.example.com.`;
    const type = random.integer(2) === 0 ? 'A' : 'AAAA';
    const timeMs = 1.7e12 + i * 50 + random.integer(1000) / 1000;
    const query = dnsMessage(name, type, { id });
    const rcode = rcodes[random.integer(rcodes.length)]!;
    const many = random.integer(5) === 0 ? 120 : 1;
    const answer = Array.from({ length: rcode === 0 ? many : 0 }, (_, n) =>
      addressRecord(name, type === 'A' ? `192.0.2.${n}` : `2001:db8::${n}`),
    );
    const reply = dnsMessage(name, type, { id, reply: true, rcode, answer });
    const lost = random.integer(6) === 0;
    if (random.integer(4) === 0) {
      packets.push({ timeMs, bytes: tcpPacket(ends, 100, TCP.SYN) });
      packets.push({ timeMs: timeMs + 0.1, bytes: tcpPacket(back(ends), 900, TCP.SYN | TCP.ACK) });
      packets.push({
        timeMs: timeMs + 0.2,
        bytes: tcpPacket(ends, 101, TCP.PSH | TCP.ACK, framed(query)),
      });
      if (lost) continue;
      const stream = framed(reply);
      const half = stream.length >> 1;
      packets.push({
        timeMs: timeMs + 3,
        bytes: tcpPacket(back(ends), 901, TCP.ACK, stream.subarray(0, half)),
      });
      packets.push({
        timeMs: timeMs + 4,
        bytes: tcpPacket(back(ends), 901 + half, TCP.PSH | TCP.ACK, stream.subarray(half)),
      });
      continue;
    }
    packets.push({ timeMs, bytes: udpPacket(ends, query, 1 + i) });
    if (lost) continue;
    const parts =
      reply.length > 1000
        ? fragments(back(ends), reply, 1200, 2000 + i)
        : [udpPacket(back(ends), reply, 2000 + i)];
    parts.forEach((bytes, n) => packets.push({ timeMs: timeMs + 2 + n / 10, bytes }));
  }
  return packets.toSorted((one, other) => one.timeMs - other.timeMs);
}

/** One line per query in tshark's terms: ID, name, type, the reply's rcode or none, and the latency. */
function tshark(path: string): string[] {
  const fields = [
    'dns.id',
    'dns.qry.name',
    'dns.qry.type',
    'dns.flags.response',
    'dns.flags.rcode',
    'dns.time',
    'dns.count.answers',
  ];
  const { stdout, status, stderr } = spawnSync(
    'tshark',
    ['-r', path, '-Y', 'dns', '-T', 'fields', ...fields.flatMap((field) => ['-e', field])],
    { encoding: 'utf8', maxBuffer: 1 << 26 },
  );
  assert.equal(status, 0, stderr);
  const rows = stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.split('\t'));
  const truth = (text: string | undefined): boolean => text === '1' || text === 'True';
  const key = (row: readonly string[]): string => `${Number(row[0])} ${row[1]}. ${row[2]}`;
  const replies = new Map<string, string>();
  for (const row of rows)
    if (truth(row[3]))
      replies.set(key(row), `${row[4]} ${row[6]} ${Math.round(Number(row[5]) * 1e6)}`);
  return rows
    .filter((row) => !truth(row[3]))
    .map((row) => `${key(row)} ${replies.get(key(row)) ?? 'none'}`)
    .toSorted();
}

async function ours(path: string): Promise<string[]> {
  const types: Readonly<Record<string, number>> = { A: 1, AAAA: 28 };
  const codes: Readonly<Record<string, number>> = {
    NOERROR: 0,
    SERVFAIL: 2,
    NXDOMAIN: 3,
    REFUSED: 5,
  };
  const { out, code } = await runCommand(capture, [path, '-o', 'json', '-q']);
  assert.equal(code, 0);
  return out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as ExchangeDocument)
    .map(({ query, question, rcode, latencyMs, reply }) => {
      const asked = `${query!.id} ${question.name} ${types[question.type]}`;
      if (rcode === null) return `${asked} none`;
      return `${asked} ${codes[rcode]} ${reply!.answer.length} ${Math.round(latencyMs! * 1000)}`;
    })
    .toSorted();
}

describe('the same file, read by tshark and by ndots', () => {
  for (const [name, link] of [
    ['Ethernet', LINK.ETHERNET],
    ['Linux cooked', LINK.SLL],
    ['Linux cooked v2', LINK.SLL2],
    ['raw IP', LINK.RAW],
    ['BSD loopback', LINK.NULL],
  ] as const)
    test(`${name}: the same exchanges, with the same times`, { skip: missing }, async () => {
      const path = join(directory, `${link}.pcap`);
      const packets = traffic(link + 1).map(({ timeMs, bytes }) => ({
        timeMs,
        bytes: linked(bytes, link, link === LINK.ETHERNET ? [5] : []),
      }));
      writeFileSync(
        path,
        pcapFile(link, packets, { nano: link === LINK.RAW, big: link === LINK.SLL }),
      );
      assert.deepEqual(await ours(path), tshark(path));
    });

  test('tshark and tcpdump read the output of ndots', { skip: missing }, async () => {
    const path = join(directory, 'written.pcapng');
    const from = join(directory, 'from.pcap');
    writeFileSync(from, pcapFile(LINK.RAW, traffic(99)));
    for (const more of [[], ['--redact-key', 'x']]) {
      const { err } = await runCommand(capture, [from, '-w', path, '-o', 'none', ...more]);
      const read = tshark(path);
      const [, ended, waiting = 0] =
        / (\d+) queries(?:.*?(\d+) more still waiting)?/s.exec(err) ?? [];
      assert.equal(read.length, Number(ended) + Number(waiting));
      if (more.length === 0) assert.deepEqual(read, tshark(from));
      const dumped = spawnSync('tcpdump', ['-nr', path], { encoding: 'utf8' });
      if (dumped.error === undefined) assert.equal(dumped.status, 0, dumped.stderr);
    }
  });
});
