import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { costsAtMost } from '../../../../test/kit/growth.ts';
import {
  addressRecord,
  back,
  dnsMessage,
  linked,
  pcapFile,
  udpPacket,
  type Captured,
  type Ends,
} from '../../../../test/kit/packets.ts';
import { everybody, pods as podsOf } from '../../../../test/kit/story-parts.ts';
import { healthy, play } from '../../../../test/kit/story.ts';
import { runCommand, type Ran } from '../../../../test/kit/trace-command.ts';
import { LINK } from '../../../tools/capture/read/packets/frame.ts';
import { capture } from './capture.ts';
import type { Io } from '../command.ts';

const directory = mkdtempSync(join(tmpdir(), 'capture-'));
after(() => rmSync(directory, { recursive: true }));
const at = (name: string): string => join(directory, name);
const run = (...words: string[]): Promise<Ran> => runCommand(capture, words);

const start = Date.UTC(2026, 10, 22, 3, 7, 20);
const client: Ends = { from: '10.244.1.5', fromPort: 40_000, to: '10.96.0.10', toPort: 53 };

/** A query, and its reply after `tookMs`. */
function exchange(
  atMs: number,
  name: string,
  type: string,
  more: { id?: number; ends?: Ends; rcode?: number; address?: string; tookMs?: number | null } = {},
): Captured[] {
  const { id = 7, ends = client, rcode = 0, address, tookMs = 1 } = more;
  const query = {
    timeMs: start + atMs,
    bytes: udpPacket(ends, dnsMessage(name, type, { id }), id),
  };
  if (tookMs === null) return [query];
  const answer = address === undefined ? [] : [addressRecord(name, address)];
  const reply = dnsMessage(name, type, { id, reply: true, rcode, answer });
  return [query, { timeMs: start + atMs + tookMs, bytes: udpPacket(back(ends), reply, id + 1) }];
}

const walk = [
  ...exchange(0, 'api.example.com.shop.svc.cluster.local.', 'A', { id: 1, rcode: 3 }),
  ...exchange(0, 'api.example.com.shop.svc.cluster.local.', 'AAAA', { id: 2, rcode: 3 }),
  ...exchange(2, 'api.example.com.svc.cluster.local.', 'A', { id: 3, rcode: 3 }),
  ...exchange(2, 'api.example.com.svc.cluster.local.', 'AAAA', { id: 4, rcode: 3 }),
  ...exchange(4, 'api.example.com.', 'A', { id: 5, address: '192.0.2.1' }),
  ...exchange(4, 'api.example.com.', 'AAAA', { id: 6, tookMs: null }),
  ...exchange(9000, 'other.example.', 'A', { id: 9, ends: { ...client, from: '10.244.1.6' } }),
].toSorted((one, other) => one.timeMs - other.timeMs);
const file = at('walk.pcap');
const ethernet = walk.map(({ timeMs, bytes }) => ({ timeMs, bytes: linked(bytes, LINK.ETHERNET) }));
writeFileSync(file, pcapFile(LINK.ETHERNET, ethernet));

const pods = at('pods.yaml');
writeFileSync(
  pods,
  `apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata:
    name: cart-5d9f-x1
    namespace: shop
    labels: {pod-template-hash: 5d9f}
    ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: cart-5d9f, controller: true}]
  spec: {nodeName: node7}
  status: {phase: Running, podIP: 10.244.1.5}
- apiVersion: v1
  kind: Service
  metadata: {name: kube-dns, namespace: kube-system}
  spec: {clusterIP: 10.96.0.10}
`,
);

interface ListedClient {
  readonly queries: number;
  readonly lookups: number;
  readonly resolver: {
    readonly kinds: readonly string[];
    readonly confidence: number | null;
    readonly lookups: number;
    readonly why?: string;
  };
}

/** Parses the clients at the end of the JSON output. */
function clientsIn(out: string): {
  readonly exchanges: number;
  readonly listed: readonly ListedClient[];
  readonly others: object | undefined;
} {
  const documents = out
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { readonly kind: string });
  const of = (kind: string): readonly object[] => documents.filter((each) => each.kind === kind);
  return {
    exchanges: of('Exchange').length,
    listed: of('Client') as readonly ListedClient[],
    others: of('OtherClients')[0],
  };
}

test('when the reader of the output pauses, so does the reading, and no output is lost', async () => {
  const line =
    '[INFO] 10.0.0.1:4000 - 1 "A IN a.example. udp 40 false 512" NOERROR qr,rd 100 1ms\n';
  const long = at('long.log');
  writeFileSync(long, line.repeat(40_000));
  let goOn = (): void => undefined;
  const reads = new Promise<void>((resolve) => (goOn = resolve));
  let lines = 0;
  const io: Io = {
    out: (text) => void (lines += text.split('\n').length - 1),
    err: () => undefined,
    taken: () => reads,
    progress: () => undefined,
    env: {},
    colour: false,
    columns: 100,
    signal: new AbortController().signal,
    stdin: () => Promise.resolve(''),
    program: 'ndots',
  };
  const ended = capture.run([long, '-q', '--clients', '0'], io);
  await new Promise((resolve) => setTimeout(resolve, 500));
  assert.ok(lines < 10_000, `${lines}`);
  goOn();
  assert.equal(await ended, 0);
  assert.equal(lines, 40_000);
});

describe('ndots capture', () => {
  test('a line for each query: time, client, question and result', async () => {
    const { code, out, err } = await run(file);
    assert.equal(code, 0);
    const lines = out.trimEnd().split('\n');
    assert.equal(lines.length, 7);
    assert.equal(
      lines[0],
      '03:07:20.000000  10.244.1.5:40000 → 10.96.0.10:53  A api.example.com.shop.svc.cluster.local.  NXDOMAIN 1 ms  #1 #3',
    );
    assert.match(out, /A api\.example\.com\. {2}192\.0\.2\.1 1 ms {2}#9 #11\n/);
    assert.match(out, /AAAA api\.example\.com\. {2}no reply {2}#10\n/);
    assert.match(err, /13 packets, 13 messages, 7 queries, 2 lookups, 1 without reply/);
  });

  test('packets that were cut within the question are reported as cut', async () => {
    const cut = at('cut.pcap');
    // Keeps 14 bytes of the message after the Ethernet (14), IP (20) and UDP (8) headers.
    writeFileSync(cut, pcapFile(LINK.ETHERNET, ethernet, { snap: 56 }));
    const { err } = await run(cut);
    assert.match(err, /13 × the capture has only the beginning of a message/);
    assert.doesNotMatch(err, /no DNS that can be read|no packet uses a DNS port/);
  });

  test('a lookup lists all names from the search path, under the name that the program looked up', async () => {
    const { out } = await run(file, '-o', 'flow');
    assert.match(
      out,
      /! api\.example\.com {2}10\.244\.1\.5:40000 {2}6 queries, 3 names, 1 lost, 5 ms {2}#1 #3\n/,
    );
    assert.deepEqual(
      out.match(/(?<= ms {2})api\S+/g),
      ['shop.svc.cluster.local.', 'svc.cluster.local.', ''].map(
        (each) => `api.example.com.${each}`,
      ),
    );
  });

  test('-c limits the lookups that are shown and counted', async () => {
    const { out, err } = await run(file, '-o', 'flow', '-c', '1');
    assert.equal(out.match(/^\d\d:/gm)?.length, 1, out);
    assert.match(err, /^1 lookup, 1 without reply; reading stopped because of -c 1\n/);
    assert.match(err, /10\.244\.1\.5 +6 +1 /);
    assert.doesNotMatch(err, /10\.244\.1\.6/);
    const query = await run(file, '-c', '1');
    assert.equal(query.out.trimEnd().split('\n').length, 1);
    assert.match(query.err, /^1 query, 0 without reply; reading stopped because of -c 1\n/);
    const all = await run(file, '-o', 'flow');
    assert.equal(all.out.match(/^\d\d:/gm)?.length, 2);
    assert.doesNotMatch(all.err, /shown/);
  });

  test('a file is printed in time order, even if replies are late', async () => {
    const late = [
      ...exchange(0, 'slow.example.', 'A', { id: 1, tookMs: 4800, address: '192.0.2.1' }),
      ...exchange(10, 'lost.example.', 'A', { id: 2, tookMs: null }),
      ...Array.from({ length: 40 }, (_, i) =>
        exchange(100 + i * 500, `n${i}.example.`, 'A', { id: 10 + i, address: '192.0.2.2' }),
      ).flat(),
    ].toSorted((one, other) => one.timeMs - other.timeMs);
    // When several CPUs read a capture, some packets are out of order.
    const mixed = late.map((_, i) => late[i % 7 === 3 ? i + 1 : i % 7 === 4 ? i - 1 : i]!);
    const half = Math.ceil(mixed.length / 2);
    const files = { whole: mixed, first: late.slice(half), second: late.slice(0, half) };
    for (const [name, packets] of Object.entries(files))
      writeFileSync(
        at(`${name}.pcap`),
        pcapFile(
          LINK.ETHERNET,
          packets.map((each) => ({ ...each, bytes: linked(each.bytes, LINK.ETHERNET) })),
        ),
      );
    for (const output of ['text', 'flow', 'json'])
      for (const given of [[at('whole.pcap')], [at('first.pcap'), at('second.pcap')]]) {
        const { out } = await run(...given, '-o', output, '-q');
        const times = out.match(/\d\d:\d\d:\d\d\.\d{6}(?!.*"kind":"Client")/g)!;
        assert.ok(times.length >= 42, `${output} ${times.length}`);
        assert.deepEqual(times, times.toSorted(), `${output} of ${given.length}`);
      }
    const { out } = await run(at('whole.pcap'), '-o', 'flow');
    assert.match(out, /! slow\.example\. /);
    assert.match(out, /✓ n3\.example\. /);
    assert.match(out, /✗ lost\.example\. /);
  });

  test('a row shows aliases, their targets, and why a server failed', async () => {
    const name = 'www.example.';
    const alias = { name, type: 5, class: 1, ttl: 5, data: { target: 'cdn.example.net.' } };
    const ede = new TextEncoder().encode('\u0000\u0009no key');
    const edns = {
      ...{ version: 0, udpSize: 1232, dnssecOk: false },
      options: [{ code: 15, data: ede }],
    };
    const replies = [
      { answer: [alias, addressRecord('cdn.example.net.', '192.0.2.7')] },
      { answer: [alias], rcode: 3 },
      { answer: [alias] },
      { rcode: 2, edns },
    ];
    const packets = replies.flatMap((more, i): Captured[] => [
      { timeMs: start + i, bytes: udpPacket(client, dnsMessage(name, 'A', { id: i }), i) },
      {
        timeMs: start + i + 0.5,
        bytes: udpPacket(back(client), dnsMessage(name, 'A', { id: i, reply: true, ...more }), i),
      },
    ]);
    writeFileSync(at('alias.pcap'), pcapFile(LINK.RAW, packets));
    const rows = (await run(at('alias.pcap'))).out.trimEnd().split('\n');
    assert.deepEqual(
      rows.map((row) => /www\.example\. {2}(.*?) 0\.5 ms/.exec(row)?.[1]),
      [
        'CNAME cdn.example.net. 192.0.2.7',
        'CNAME cdn.example.net. NXDOMAIN',
        'CNAME cdn.example.net.',
        'SERVFAIL (EDE: 9 (DNSKEY Missing): (no key))',
      ],
    );
  });

  test('no row is wider than the terminal', async () => {
    for (const columns of [40, 60, 80])
      for (const output of ['text', 'flow', 'clients'])
        for (const colour of [false, true]) {
          const { out } = await runCommand(capture, [file, '-o', output], {}, { columns, colour });
          // eslint-disable-next-line no-control-regex -- the escapes of colours
          for (const line of out.replace(/\u001b\[\d+m/g, '').split('\n'))
            assert.ok(line.length <= columns, `${columns} ${output}: ${line}`);
          assert.doesNotMatch(out, /\\u001b/);
        }
  });

  test('clients are shown as pods and servers as services, and filters accept both', async () => {
    const { out } = await run(
      file,
      '--manifests',
      pods,
      '--from-pod',
      'shop/',
      '--rcode',
      'NXDOMAIN',
    );
    const lines = out.trimEnd().split('\n');
    assert.equal(lines.length, 4);
    assert.match(lines[0]!, /shop\/cart-5d9f-x1:40000 → svc kube-system\/kube-dns:53/);
    for (const [words, expected] of [
      [['--workload', 'deploy/cart'], 6],
      [['--workload', 'shop/deploy/cart', '--type', 'AAAA'], 3],
      [['--workload', 'deployments.apps/cart'], 6],
      [['--service', 'kube-dns', '--not', 'from-ip=10.244.1.5'], 1],
      [['--name', '*.cluster.local'], 4],
      [['--name', 'api.*', '--verdict', 'lost'], 1],
      [['--slower-than', '500ms'], 1],
      [['--from-ip', '10.244.1.6', '--from-ip', '10.244.1.5'], 7],
    ] as const) {
      const found = await run(file, '--manifests', pods, ...words);
      assert.equal(found.out.trimEnd().split('\n').length, expected, words.join(' '));
    }
    assert.equal((await run(file, '--name', 'nowhere.example')).code, 1);
    const kindless = await run(file, '--manifests', pods, '--workload', 'cart');
    assert.equal(kindless.code, 3);
    assert.match(kindless.err, /--workload takes a kind and a name such as deploy\/cart/);
  });

  test('compressed files are read, and a file given twice counts twice', async () => {
    const bytes = readFileSync(file);
    writeFileSync(at('walk.gz'), gzipSync(bytes));
    writeFileSync(at('walk.zst'), zstdCompressSync(bytes));
    for (const name of ['walk.gz', 'walk.zst'])
      assert.equal((await run(at(name))).out, (await run(file)).out);
    assert.match(
      (await run(file, at('walk.gz'), file)).err,
      /^39 packets, 39 messages, 21 queries/,
    );
  });

  test('a truncated file is read up to the cut, and the cut is reported', async () => {
    const bytes = readFileSync(file);
    writeFileSync(at('cut.pcap'), bytes.subarray(0, bytes.length - 10));
    writeFileSync(at('cut.gz'), gzipSync(bytes).subarray(0, -30));
    const cut = await run(at('cut.pcap'));
    assert.equal(cut.code, 0);
    assert.match(cut.err, /the file ends inside a packet, which is ignored, at byte \d+/);
    const gz = await run(at('cut.gz'));
    assert.match(gz.err, /cut\.gz \(gzip\) cannot be read to the end: the file is truncated/);
  });

  test('a file that is not a capture, is empty or does not exist is exit code 2, with the reason', async () => {
    writeFileSync(at('no.pcap'), 'hello\nworld\n');
    writeFileSync(at('empty.pcap'), '');
    for (const [name, text] of [
      ['no.pcap', /is not a capture, dnstap stream or query log/],
      ['empty.pcap', /is empty/],
      ['nowhere.pcap', /cannot read .*nowhere\.pcap: no such file or directory/],
      ['.', /is a directory, not a capture/],
    ] as const) {
      const { code, err } = await run(at(name));
      assert.equal(code, 2, name);
      assert.match(err, text);
      assert.doesNotMatch(err, /0 messages/);
    }
    assert.equal((await run(at('nowhere.pcap'), file)).code, 0);
  });

  test('a full disk ends the capture of packets, with an error', async () => {
    const { code, err } = await run(file, file, '-o', 'none', '-w', '/dev/full');
    assert.equal(code, 2);
    assert.match(err, /^ndots capture: cannot write \/dev\/full: the disk is full/m);
    assert.equal(err.match(/cannot write/g)!.length, 1);
  });

  test('so it does if packets are buffered while a pipe is silent', async () => {
    const pipe = at('pipe');
    execFileSync('mkfifo', [pipe]);
    const ran = run(pipe, '-o', 'none', '-w', '/dev/full');
    const writer = await open(pipe, 'r+');
    await writer.writeFile(readFileSync(file));
    const { code, err } = await ran;
    await writer.close();
    assert.equal(code, 2);
    assert.match(err, /cannot write \/dev\/full: the disk is full/);
  });

  test('unreadable packets give exit code 2, without a hint about ports', async () => {
    writeFileSync(at('wifi.pcap'), pcapFile(105, walk));
    writeFileSync(at('head.pcap'), pcapFile(LINK.RAW, walk).subarray(0, 13));
    for (const [name, text] of [
      ['wifi.pcap', /packets with link type 105, which ndots does not support/],
      ['head.pcap', /the file ends inside its header/],
    ] as const) {
      const { code, err } = await run(at(name));
      assert.equal(code, 2, name);
      assert.match(err, text);
      assert.doesNotMatch(err, /--port/);
    }
  });

  test('packets without port 53 give a hint about --port', async () => {
    const elsewhere = exchange(0, 'a.example.', 'A', { ends: { ...client, toPort: 1053 } });
    writeFileSync(at('elsewhere.pcap'), pcapFile(LINK.RAW, elsewhere));
    const { code, err } = await run(at('elsewhere.pcap'));
    assert.equal(code, 1);
    assert.match(err, /2 packets, 0 messages[^]*--port selects ports other/);
    assert.doesNotMatch((await run(at('elsewhere.pcap'), '--port', '1053')).err, /--port/);
  });

  test('written packets equal those that were read, and can be filtered', async () => {
    await run(file, '-w', at('all.pcapng'), '-o', 'none', '-q');
    assert.equal((await run(at('all.pcapng'))).out, (await run(file)).out);
    await run(file, '--from-ip', '10.244.1.6', '-w', at('one.pcapng'), '-o', 'none', '-q');
    assert.match((await run(at('one.pcapng'))).err, /^2 packets/);
    await run(file, '--rcode', 'NXDOMAIN', '-w', at('nx.pcapng'), '-o', 'none', '-q');
    assert.match((await run(at('nx.pcapng'))).err, /8 messages, 4 queries/);
  });

  test('packets are written to standard output and also to a file', () => {
    const both = at('both.pcapng');
    const out = execFileSync('bin/ndots', ['capture', file, '-q', '-o', 'pcapng', '-w', both]);
    assert.deepEqual(readFileSync(both), out);
  });

  test('pseudonyms are the same for a name and key, and contain no part of the name', async () => {
    const one = await run(file, '--redact-key', 'k', '-w', at('hidden.pcapng'));
    const two = await run(file, '--redact-key', 'k');
    assert.equal(one.out, two.out);
    assert.doesNotMatch(one.out, /api|example|10\.244\.1\.5|192\.0\.2\.1|shop/);
    assert.match(one.out, /\.svc\.cluster\.local\./);
    const names = [...one.out.matchAll(/ AAAA (\S+)\.svc\.cluster\.local\. /g)].map(([, stem]) =>
      stem!.split('.').slice(0, 3).join('.'),
    );
    assert.equal(new Set(names).size, 1);
    assert.ok(!readFileSync(at('hidden.pcapng')).includes('example'));
    assert.equal((await run(at('hidden.pcapng'))).out, one.out);
    assert.notEqual((await run(file, '--redact')).out, one.out);
  });

  test('the client field of a log is read only if it is an address', async () => {
    const line = (client: string): string =>
      `2026-11-22T03:07:20.5Z [INFO] ${client}:40000 - 7 "A IN www.example.com. udp 33 false 1232" NOERROR qr 60 0.25s\n`;
    writeFileSync(
      at('odd.log'),
      line('10.1.2.3') + line('\u001b[31mmine') + line('[fe80::1%eth0]'),
    );
    const { out } = await run(at('odd.log'));
    assert.equal(out.match(/www\.example\.com/g)?.length, 2);
    assert.ok(!out.includes('\u001b'));
  });

  test('reading a log with long errors full of arrows takes time proportional to its size', async () => {
    const bytes = 4_000_000;
    const read = (arrows: number): (() => Promise<unknown>) => {
      const line = `[ERROR] plugin/errors: 2 a. A: ${'->'.repeat(arrows)}\n`;
      const path = at(`arrows-${arrows}.log`);
      writeFileSync(path, line.repeat(bytes / line.length));
      return () => run(path);
    };
    await costsAtMost(8, read(4050), read(60));
  });

  test('JSON output has an object per line', async () => {
    const { out } = await run(
      file,
      '-o',
      'json',
      '--type',
      'A',
      '--name',
      'api.example.com',
      '--manifests',
      pods,
    );
    const document = JSON.parse(out.split('\n')[0]!) as Record<string, unknown>;
    assert.deepEqual(
      { ...document, query: null, reply: null },
      {
        kind: 'Exchange',
        time: '2026-11-22T03:07:20.004000Z',
        client: { address: '10.244.1.5', port: 40_000, name: 'shop/cart-5d9f-x1:40000' },
        server: { address: '10.96.0.10', port: 53, name: 'svc kube-system/kube-dns:53' },
        protocol: 'udp',
        question: { name: 'api.example.com.', type: 'A' },
        verdict: 'answered',
        rcode: 'NOERROR',
        latencyMs: 1,
        attempt: 1,
        hops: [],
        frames: [9, 11],
        query: null,
        reply: null,
      },
    );
  });

  test('a slow query with a slowlog line and a log line counts once', async () => {
    const query =
      '10.244.1.7:41000 - 29008 "A IN api.example.com. udp 44 false 1232" NOERROR qr,rd,ra 60 2.004s';
    writeFileSync(
      at('slow.log'),
      `[INFO] ${query}\n[WARNING] plugin/slowlog: ${query} plugin=forward cache=miss upstreams=- spent=forward:2.004s\n`,
    );
    const { err } = await run(at('slow.log'));
    assert.match(err, /1 message, 1 query, 1 lookup/);
  });

  test('query logs of CoreDNS are exchanges', async () => {
    writeFileSync(
      at('coredns.log'),
      `2026-11-22T03:07:20.500000123Z [INFO] 10.244.1.5:40000 - 7 "A IN www.example.com. udp 33 false 1232" NOERROR qr,rd,ra 60 0.250000000s
[INFO] plugin/reload: Running configuration
2026-11-22T03:07:21Z [INFO] [fd00::5]:40001 - 8 "AAAA IN nx.cluster.local. udp 33 false 512" NXDOMAIN qr,aa,rd 60 0.000100s
`,
    );
    const { out, err } = await run(at('coredns.log'));
    assert.equal(
      out,
      `03:07:20.250000  10.244.1.5:40000 → -  A www.example.com.  NOERROR 250 ms
03:07:20.999900  [fd00::5]:40001 → -  AAAA nx.cluster.local.  NXDOMAIN 0.1 ms
`,
    );
    assert.match(err, /2 queries/);
    // The log shows that the query was answered, but not the answer itself, which is not a failure.
    assert.match((await run(at('coredns.log'), '-o', 'flow')).out, /✓ www\.example\.com/);
  });

  test('a log without timestamps is shown without times', async () => {
    const line = (type: string): string =>
      `[INFO] 10.244.1.5:40000 - 7 "${type} IN www.example.com. udp 33 false 1232" NOERROR qr,rd,ra 60 0.250s\n`;
    writeFileSync(at('timeless.log'), line('A') + line('AAAA'));
    const rows = (await run(at('timeless.log'), '-q')).out;
    assert.match(
      rows,
      /^- {16}10\.244\.1\.5:40000 → - {2}A www\.example\.com\. {2}NOERROR 250 ms$/m,
    );
    const flow = (await run(at('timeless.log'), '-q', '-o', 'flow')).out;
    assert.match(flow, /^- {16}✓ www\.example\.com\. {2}10\.244\.1\.5:40000 {2}2 queries$/m);
    assert.match(flow, /^ {9}- {2}www\.example\.com\. {2}A NOERROR 250 ms/m);
  });

  test('clients are listed at the end, busiest first, each with its resolver', async () => {
    const { err } = await run(file, '--manifests', pods);
    assert.match(
      err,
      /\n\nCLIENT {27}QUERIES {2}LOOKUPS {2}RESOLVER\nshop\/cart-5d9f-x1 \(deploy\/cart\) {8}6 {8}1 {2}\S.*\n10\.244\.1\.6 {29}1 {8}1 {2}not told apart: too few lookups\n$/,
    );
    assert.doesNotMatch((await run(file, '-q')).err, /CLIENT/);
    assert.doesNotMatch((await run(file, '--clients', '0')).err, /CLIENT/);
  });

  test('clients with glibc, musl and Go are distinguished, each with a confidence', async () => {
    const path = at('everybody.pcap');
    writeFileSync(path, pcapFile(LINK.RAW, await play(everybody(8), healthy, { seed: 3 })));
    const { out, err, code } = await run(path, '-o', 'clients');
    assert.equal(code, 0);
    assert.doesNotMatch(err, /CLIENT/);
    const rows = out.trimEnd().split('\n').slice(1);
    const found = (kind: string): number =>
      rows.filter((row) => new RegExp(`  ${kind} \\d\\d %$`).test(row)).length;
    assert.deepEqual([rows.length, found('glibc'), found('musl'), found('go')], [11, 5, 3, 3], out);
    const { listed } = clientsIn((await run(path, '-o', 'json', '--clients', '99')).out);
    assert.equal(listed.length, 11);
    for (const { resolver } of listed) {
      assert.equal(resolver.kinds.length, 1);
      assert.ok(resolver.confidence! >= 0.7 && resolver.confidence! < 1);
      assert.equal(resolver.why, undefined);
    }
  });

  test('JSON lines are queries; on request a line per client follows, and one for unlisted clients', async () => {
    const json = ['-o', 'json', '--manifests', pods];
    assert.deepEqual(clientsIn((await run(file, ...json)).out).listed, []);
    const { out } = await run(file, ...json, '--clients', '5');
    const { exchanges, listed, others } = clientsIn(out);
    assert.equal(exchanges, 7);
    const { resolver, ...cart } = listed[0]!;
    assert.deepEqual(cart, {
      kind: 'Client',
      address: '10.244.1.5',
      name: 'shop/cart-5d9f-x1',
      workload: 'deploy/cart',
      node: 'node7',
      queries: 6,
      lost: 1,
      lookups: 1,
    });
    assert.equal(resolver.lookups, 1);
    assert.deepEqual(listed[1], {
      kind: 'Client',
      address: '10.244.1.6',
      queries: 1,
      lost: 0,
      lookups: 1,
      resolver: { kinds: [], confidence: null, lookups: 1, why: 'too few lookups' },
    });
    assert.equal(others, undefined);
    const less = clientsIn((await run(file, '-o', 'json', '--clients', '1')).out);
    assert.equal(less.listed.length, 1);
    assert.deepEqual(less.others, { kind: 'OtherClients', clients: 1, queries: 1, more: false });
    const none = clientsIn((await run(file, '-o', 'json', '--clients', '0')).out);
    assert.deepEqual([none.exchanges, none.listed, none.others], [7, [], undefined]);
  });

  test('filters select the counted queries, but clients are recognised by all of their queries', async () => {
    const path = at('filtered.pcap');
    const clients = podsOf('glibc', 2, { lookups: 8 });
    writeFileSync(path, pcapFile(LINK.RAW, await play(clients, healthy, { seed: 4 })));
    const of = async (...words: string[]): Promise<readonly ListedClient[]> =>
      clientsIn((await run(path, '-o', 'json', '--clients', '9', ...words)).out).listed;
    const [all] = await of('--from-ip', '10.244.1.1');
    const half = await of('--from-ip', '10.244.1.1', '--type', 'AAAA');
    assert.equal(half.length, 1);
    assert.deepEqual(half[0], { ...all, queries: all!.queries / 2 });
    const [redis] = await of('--from-ip', '10.244.1.1', '--name', 'redis*');
    assert.deepEqual([redis!.lookups, all!.lookups], [1, 8]);
    // The queries left by the filter do not reveal what happened to the lookup's other queries.
    assert.deepEqual(all!.resolver.kinds, ['glibc']);
    assert.deepEqual(
      (await of('-c', '1')).map(({ queries, lookups }) => [queries, lookups]),
      [[1, 1]],
    );
  });

  test('the busiest clients are listed, and the others are counted', async () => {
    const path = at('crowd.pcap');
    const packets = Array.from({ length: 10_010 }, (_, nth) =>
      exchange(nth, 'a.example.', 'A', {
        ends: { ...client, from: `10.${nth >> 14}.${(nth >> 7) & 127}.${nth & 127}` },
      }),
    ).flat();
    const busy = Array.from({ length: 3 }, (_, nth) =>
      exchange(20_000 + nth * 100, `n${nth}.example.`, 'A', {
        id: nth,
        ends: { ...client, from: '10.0.0.77' },
      }),
    ).flat();
    writeFileSync(path, pcapFile(LINK.RAW, [...packets, ...busy]));
    const { err } = await run(path, '-o', 'none');
    assert.match(
      err,
      /RESOLVER\n10\.0\.0\.77 +4 +4 .*\n(?:10\..*\n){9}and more than 9990 other clients with 10000 queries\n$/,
    );
  });

  test('a lookup whose last query times out long after the lookup ended still counts', async () => {
    const alone = [
      ...exchange(0, 'www.example.com.', 'A', { id: 1 }),
      ...exchange(10, 'gone.example.com.', 'A', { id: 2, tookMs: null }),
      ...exchange(12_000, 'gone.example.org.', 'A', { id: 3, tookMs: null }),
      ...exchange(60_000, 'end.example.com.', 'A', { id: 4 }),
    ];
    writeFileSync(at('alone.pcap'), pcapFile(LINK.RAW, alone));
    const { out } = await run(at('alone.pcap'), '-o', 'json', '--clients', '1');
    assert.match(out, /"kind":"Client".*"queries":4,"lost":2,"lookups":4/);
  });

  test('for a log without timestamps no resolver is named, with the reason', async () => {
    const path = at('untimed.log');
    const line = (nth: number): string =>
      `[INFO] 10.244.1.5:${40_000 + nth} - ${nth * 977} "A IN www${nth}.example.com. udp 33 false 512" NOERROR qr 60 0.25s\n`;
    writeFileSync(path, Array.from({ length: 8 }, (_, nth) => line(nth)).join(''));
    const { err } = await run(path);
    assert.match(err, /10\.244\.1\.5 +8 +\d {2}not told apart: the log has no times\n/);
  });

  test('the list marks truncated names, and is omitted without clients', async () => {
    const cut = at('nameless.pcap');
    writeFileSync(cut, pcapFile(LINK.ETHERNET, ethernet, { snap: 54 }));
    const { out } = await run(cut, '-o', 'clients');
    assert.match(out, /10\.244\.1\.5 +6 +0 {2}not told apart: its names are not in the capture\n/);
    writeFileSync(at('nobody.pcap'), pcapFile(LINK.RAW, []));
    assert.equal((await run(at('nobody.pcap'), '-o', 'clients')).out, '');
  });

  test('clients have pseudonyms if names are redacted', async () => {
    for (const output of ['json', 'clients', 'none']) {
      const words = ['-o', output, '--clients', '9', '--manifests', pods, '--redact-key', 'k'];
      const { out, err } = await run(file, ...words);
      assert.doesNotMatch(out + err, /10\.244\.1\.|shop|cart|node7/);
      assert.match(out + err, /deploy\//);
    }
  });

  test('at 40 columns a client takes two lines, neither wider', async () => {
    const words = [file, '-o', 'clients', '--manifests', pods];
    const { out } = await runCommand(capture, words, {}, { columns: 40 });
    for (const line of out.split('\n')) assert.ok(line.length <= 40, line);
    assert.match(out, /^shop\/cart-5d9f-x1 \(deploy\/cart\)\n {4}6 queries, 1 lookup; /m);
  });

  test('-c ends after that number of exchanges', async () => {
    assert.equal((await run(file, '-c', '2')).out.trimEnd().split('\n').length, 2);
  });

  test('packets beyond -c are not written, and a file that is not read to its end is not reported as cut', async () => {
    // Longer than one 256 KiB read, with a packet across the boundary.
    const many = Array.from({ length: 2500 }, (_, at) =>
      exchange(at * 3, 'www.example.com.', 'A', { id: at, address: '192.0.2.1' }),
    ).flat();
    writeFileSync(at('many.pcap'), pcapFile(LINK.RAW, many));
    const { code, err } = await run(at('many.pcap'), '-c', '3', '-w', at('three.pcapng'));
    assert.equal(code, 0);
    assert.doesNotMatch(err, /ends inside/);
    assert.equal((await run(at('three.pcapng'))).out.trimEnd().split('\n').length, 3);
  });

  test('join does not treat a file that is not a capture as a capture point without packets', async () => {
    for (const [name, text, words] of [
      ['Corefile', '. {\n    cache\n}\n', /Corefile is a Corefile, not a capture/],
      ['notes.txt', 'call them back\n', /notes\.txt: it is not a capture/],
      ['nothing.pcap', '', /nothing\.pcap: it is empty/],
    ] as const) {
      writeFileSync(at(name), text);
      const { code, err } = await run('join', file, at(name));
      assert.equal(code, 2);
      assert.match(err, words);
    }
  });

  test('join hides names and addresses with --redact, in its text and in JSON', async () => {
    const words = ['join', file, file, '--redact-key', 'k', '--manifests', pods];
    for (const output of ['text', 'json']) {
      const { out } = await run(...words, '-o', output);
      assert.match(out, /AAAA/);
      assert.doesNotMatch(out, /example|shop|cart|10\.244\.1\.|10\.96\.0\.10/);
    }
  });

  test('join does not count queries that still wait at the end as unanswered', async () => {
    const packets = [
      ...exchange(0, 'answered.example.', 'A', { id: 1 }),
      exchange(100, 'waiting.example.', 'A', { id: 2 })[0]!,
    ];
    writeFileSync(at('short.pcap'), pcapFile(LINK.RAW, packets));
    const { code, out } = await run('join', at('short.pcap'), at('short.pcap'));
    assert.equal(code, 0);
    assert.match(
      out,
      /short\.pcap {2}2 queries: 1 answered, 0 without reply, 1 more still waiting at the end\n/,
    );
    assert.match(out, /^0 of 1 got no reply, 1 more still waiting at the end\.$/m);
  });

  test('join shows where queries and replies were lost, even if clocks differ', async () => {
    const at3 = (name: string, drop: (packet: number) => boolean, aheadMs: number): string => {
      const packets = Array.from({ length: 8 }, (_, i) =>
        exchange(100 * i, `n${i}.example.`, 'A', { id: i + 1 }),
      )
        .flat()
        .concat(exchange(20_000, 'end.example.', 'A'))
        .filter((_, index) => !drop(index))
        .map(({ timeMs, bytes }) => ({ timeMs: timeMs + aheadMs, bytes }));
      writeFileSync(at(name), pcapFile(LINK.RAW, packets));
      return at(name);
    };
    // Query 1 (packet 2) never reaches the node. Reply 2 (packet 5) is lost on its way to the client, and query 3 gets
    // no reply.
    const paths = [
      at3('client.pcap', (packet) => [3, 5, 7].includes(packet), 0),
      at3('node.pcap', (packet) => [2, 3, 7].includes(packet), 3_600_000),
      at3('server.pcap', (packet) => [2, 3, 7].includes(packet), -5000),
    ];
    const { code, out } = await run('join', ...paths);
    assert.equal(code, 1);
    assert.match(out, /node\.pcap {2}saw 8 of them; its clock is 3600\.0 s ahead/);
    assert.match(out, /^client\.pcap {2}9 queries: 6 answered, 3 without reply\n/);
    assert.match(out, /3 of 9 got no reply/);
    const groups = [
      ['the query was seen at client.pcap but not at node.pcap', 'n1'],
      ['the reply was seen at node.pcap but not at client.pcap', 'n2'],
      ['the query reached server.pcap, but no reply left it', 'n3'],
    ] as const;
    for (const [where, name] of groups) {
      // A place is printed once, above its queries.
      assert.equal(out.split(where).length, 2, where);
      assert.match(
        out.slice(out.indexOf(where)),
        new RegExp(`^[^\\n]*:\\n  \\S+ .* ${name}\\.example`),
      );
    }
    const other = mkdtempSync(join(directory, 'other-'));
    copyFileSync(paths[0]!, join(other, 'client.pcap'));
    // Files with the same name keep their directories.
    assert.ok((await run('join', paths[0]!, join(other, 'client.pcap'))).out.includes(paths[0]!));
  });

  test('invalid input is rejected with a hint', async () => {
    for (const [words, text] of [
      [[], /nothing to read/],
      [['join', 'a.pcap'], /join needs at least two captures/],
      [['-i', 'lo', 'a.pcap'], /files cannot be combined with a live capture/],
      [['a.pcap', '--verdict', 'dopped'], /--verdict takes answered, lost or error, not "dopped"/],
      [['a.pcap', '--not', 'pods=x'], /--not takes a filter and its value/],
      [['a.pcap', '--not', 'rcod=NXDOMAIN'], /Did you mean rcode=VALUE\?/],
      [['join', 'a.pcap', 'b.pcap', '--clients', '3'], /join does not take --clients/],
      [['a.pcap', '--ip', 'x'], /--ip takes an address or a prefix/],
      [['-i', 'lo', '--bpf'], /--bpf needs --process/],
      [['a.pcap', '--command', 'curl'], /--command needs ndots capture --process/],
      [['a.pcap', '--pod', 'shop/cart'], /--pod needs --cluster or --manifests/],
      [['-i', 'lo', '--not', 'service=kube-dns'], /--not service= needs --cluster or --manifests/],
    ] as const) {
      const { code, err } = await run(...words);
      assert.equal(code, 3, words.join(' '));
      assert.match(err, text);
    }
    if (process.getuid?.() === 0) {
      const { code, err } = await run('-i', 'nowhere0', '--for', '1s');
      assert.equal(code, 2);
      assert.match(err, /there is no interface nowhere0/);
    }
  });
});
