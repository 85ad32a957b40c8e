import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { freePorts } from '../../../../test/kit/free-ports.ts';
import { pcapFile, udpPacket } from '../../../../test/kit/packets.ts';
import { stories } from '../../../../test/kit/stories.ts';
import { writeNodeCapture } from '../../../../test/kit/node-captures.ts';
import { everybody, pods } from '../../../../test/kit/story-parts.ts';
import { healthy, play, type Passing } from '../../../../test/kit/story.ts';
import { runCommand, type Ran } from '../../../../test/kit/trace-command.ts';
import { findingKinds } from '../../../tools/doctor/findings/table.ts';
import { LINK } from '../../../tools/capture/read/packets/frame.ts';
import { doctor } from './doctor.ts';

const directory = mkdtempSync(join(tmpdir(), 'doctor-'));
after(() => rmSync(directory, { recursive: true }));
const at = (name: string): string => join(directory, name);
const run = (...words: string[]): Promise<Ran> => runCommand(doctor, words);

before(async () => {
  for (const [file, name] of [
    ['race.pcap', 'S1 conntrack race'],
    ['clean.pcap', 'clean: pods of all sorts'],
    ['cut.pcap', 'S28 a policy cuts some pods off'],
  ] as const) {
    const story = stories.find((each) => each.name === name)!;
    writeFileSync(at(file), pcapFile(LINK.RAW, await story.packets(1)));
  }
});

describe('ndots doctor', () => {
  test('a finding has all of its parts, and the end lists what is ruled out', async () => {
    const { code, out } = await run(at('race.pcap'), '--ruled-out');
    assert.equal(code, 1);
    for (const part of [
      /^✕ ND3001 {2}One of two queries/m,
      /^ {2}seen {4}\d+ of \d+/m,
      /^ {2}who {5}8 clients .*/m,
      /^ {2}why {5}Both/m,
      /^ {2}fix {5}a {2}/m,
      /^ {2}prove {3}/m,
      /Disproved if: insert_failed/,
      /^ {2}look {4}frames \d+/m,
      /^Ruled out/m,
      /^ {2}an overloaded server: /m,
      /^Cannot be checked with this input$/m,
    ])
      assert.match(out, part);
    assert.match(out, /resolvers: glibc 5, musl 3/);
    for (const line of out.split('\n')) assert.ok(line.length <= 100, line);
  });

  test('clients are listed at the end with their resolvers, in JSON too', async () => {
    const { out } = await run(at('race.pcap'));
    const [, rows = ''] = out.split('Clients, busiest first\n');
    assert.equal(
      rows.match(/^ {2}10\.244\.1\.\d+ +\d+ +\d+ {2}(?:glibc|musl|go) \d\d %$/gm)?.length,
      10,
    );
    assert.match(rows, /^ {2}and 1 more client with \d+ queries$/m);
    const json = JSON.parse((await run(at('race.pcap'), '-o', 'json')).out) as {
      clients: readonly { kind: string; queries: number; resolver: { kinds: string[] } }[];
      totals: { queries: number };
    };
    assert.equal(json.clients.length, 11);
    assert.equal(
      json.clients.reduce((sum, { queries }) => sum + queries, 0),
      json.totals.queries,
    );
    assert.equal(json.clients.filter(({ resolver }) => resolver.kinds[0] === 'musl').length, 3);
    const hidden = await run(at('race.pcap'), '--redact-key', 'k');
    assert.doesNotMatch(hidden.out, /10\.244\.1\./);
    assert.match(hidden.out, /^ {2}10\.\d+\.\d+\.\d+ +\d+ +\d+ {2}glibc/m);
  });

  test('pseudonyms replace pods, workloads and nodes, too, everywhere in the report', async () => {
    const named = Array.from({ length: 12 }, (_, i) =>
      [
        'apiVersion: v1',
        'kind: Pod',
        'metadata:',
        `  {name: checkout-5d9f-x${i}, namespace: shopfront, labels: {pod-template-hash: 5d9f},`,
        '   ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: checkout-5d9f, controller: true, uid: u}]}',
        `spec: {nodeName: worker-blue, containers: []}`,
        `status: {podIP: 10.244.1.${i}}`,
      ].join('\n'),
    );
    writeFileSync(at('pods.yaml'), named.join('\n---\n'));
    const own = /checkout|shopfront|worker-blue/;
    for (const format of ['text', 'json']) {
      const words = [at('race.pcap'), '--manifests', at('pods.yaml'), '-o', format];
      assert.match((await run(...words)).out, own);
      const { out } = await run(...words, '--redact-key', 'k');
      assert.doesNotMatch(out, own);
      assert.match(out, /\/deploy\//);
    }
  });

  test('explanations of findings wrap, too, and are JSON for programs', async () => {
    const { out } = await runCommand(doctor, ['--explain', 'ND2003'], {}, { columns: 40 });
    for (const line of out.split('\n')) assert.ok(line.length <= 40, line);
    const { out: list } = await runCommand(doctor, ['--explain', 'ND3007'], {}, { columns: 100 });
    assert.match(list, /^- A server is silent .*\n {2}.*Six queries/m);
    const found = JSON.parse((await run('--explain', 'ND2003', '-o', 'json')).out) as object;
    assert.deepEqual(Object.keys(found), ['code', 'title', 'page']);
  });

  test('the report is printed even if the evidence cannot be written', async () => {
    const { code, out, err } = await run(at('race.pcap'), '--evidence', at('missing/e.pcapng'));
    assert.equal(code, 2);
    assert.match(out, /^✕ ND3001/m);
    assert.match(err, /missing/);
  });

  test('a capture is still diagnosed if the cluster is unreachable', async () => {
    const kubeconfig = at('nobody.kubeconfig');
    const [port] = await freePorts(1);
    const cluster = { name: 'x', cluster: { server: `http://127.0.0.1:${port}` } };
    const context = { name: 'x', context: { cluster: 'x', user: 'x' } };
    const config = { clusters: [cluster], contexts: [context], users: [{ name: 'x', user: {} }] };
    writeFileSync(
      kubeconfig,
      JSON.stringify({ apiVersion: 'v1', kind: 'Config', 'current-context': 'x', ...config }),
    );
    for (const words of [
      ['--kubeconfig', kubeconfig],
      ['--kubeconfig', at('missing')],
    ]) {
      const { code, out } = await run(at('race.pcap'), 'cluster', ...words);
      assert.equal(code, 1);
      assert.match(out, /^✕ ND3001/m);
      assert.match(out, /^Not read\n {2}the cluster: /m);
      const json = await run(at('race.pcap'), 'cluster', ...words, '-o', 'json');
      const { notRead, findings } = JSON.parse(json.out) as { notRead: string[]; findings: [] };
      assert.equal(notRead.length, 1);
      assert.ok(findings.length > 0);
      assert.equal((await run('cluster', ...words)).code, 2);
    }
  });

  test('a named cluster that cannot be examined is reported with a next step, and gives exit code 2 if nothing else is wrong', async () => {
    const missing = await run(at('clean.pcap'), 'cluster', '--kubeconfig', at('missing'));
    assert.equal(missing.code, 2);
    const none = await runCommand(doctor, [at('clean.pcap'), 'cluster'], { HOME: directory });
    assert.equal(none.code, 2);
    assert.match(
      none.out.replaceAll(/\s+/g, ' '),
      /Not read the cluster: .*Specify one with --kubeconfig FILE/,
    );
  });

  test('an unreadable file among several gives exit code 2, unless there is a finding', async () => {
    assert.equal((await run(at('clean.pcap'), at('missing'))).code, 2);
    assert.equal((await run(at('race.pcap'), at('missing'))).code, 1);
  });

  test('at 60 columns no line is wider', async () => {
    const { out } = await runCommand(doctor, [at('race.pcap')], {}, { columns: 60 });
    assert.match(out, /ND3001/);
    for (const line of out.split('\n')) assert.ok(line.length <= 60, line);
  });

  test('if every query is answered, the report states what that proves, and what not', async () => {
    const { code, out } = await run(at('clean.pcap'));
    assert.equal(code, 0);
    assert.match(
      out,
      /✓ Every query got a reply, nine of ten within [^]*not prove that the answers\s+are\s+correct/,
    );
  });

  test('a small capture with a few lost queries does not prove that it is not DNS', async () => {
    // A short capture of a single lookup that got no reply.
    const packets = await play(
      pods('glibc', 1, { lookups: 12, everyMs: 900, resolvConf: 'nameserver 10.96.0.10\n' }),
      ({ name, ...passing }) =>
        name === 'mail.example.com.' && passing.atMs < 8000
          ? { lost: true }
          : healthy({ name, ...passing }),
      { seed: 2 },
    );
    writeFileSync(at('few.pcap'), pcapFile(LINK.RAW, packets));
    const { out } = await run(at('few.pcap'));
    assert.doesNotMatch(out, /Not DNS/);
    assert.match(out, /✓ Nothing critical was found, but \d of \d+ queries got no reply|^✕/m);
  });

  test('a log without timestamps has no duration, extends none, and names no resolver or unknown server', async () => {
    const line = (nth: number, took: string): string =>
      `[INFO] 10.244.0.9:${40_000 + nth * 7} - ${(nth * 7919) % 65_536} "A IN www${nth}.example. udp 41 false 1232" NOERROR qr,rd,ra 68 ${took}\n`;
    const lines = (stamp = ''): string =>
      Array.from({ length: 25 }, (_, nth) => stamp + line(nth, '3.990251s')).join('');
    writeFileSync(at('plain.log'), lines());
    const { out } = await run(at('plain.log'));
    assert.match(out, /^25 queries, 25 lookups/);
    // (All lookups take equally long.)
    assert.match(
      out,
      /One in three replies from the server that wrote the log took more than [\d.]+ s\.\n/,
    );
    assert.match(out, /ndots query www\d+\.example\. @SERVER\s+twice/);
    assert.doesNotMatch(out, /resolvers:|@ |^ {2}seen {4}: /m);
    const alone = /^\d+ queries(, \d+ s),/.exec((await run(at('race.pcap'))).out)![1]!;
    for (const files of [
      [at('race.pcap'), at('plain.log')],
      [at('plain.log'), at('race.pcap')],
    ]) {
      const both = await run(...files);
      assert.ok(/^[^\n]*/.exec(both.out)![0].includes(`queries${alone}, `), both.out.slice(0, 80));
    }
    const timed = lines('2026-11-22T03:07:20.123Z ');
    writeFileSync(at('timed.log'), timed.replace(/(:20)(?=\.123Z .*www24)/, ':59'));
    const { out: withTimes } = await run(at('timed.log'));
    assert.match(withTimes, /^25 queries, \d+ s, /);
    assert.doesNotMatch(withTimes, /resolvers:/);
  });

  test('a log alone does not prove that it is not DNS, because it contains no lost queries or replies', async () => {
    const line = (nth: number): string =>
      `[INFO] 10.244.0.9:${40_000 + nth} - ${nth} "A IN www${nth}.example. udp 41 false 512" NOERROR qr,rd,ra 68 0.000990251s\n`;
    writeFileSync(at('all-well.log'), Array.from({ length: 40 }, (_, nth) => line(nth)).join(''));
    const { code, out } = await run(at('all-well.log'), '--ruled-out');
    assert.equal(code, 0);
    assert.match(
      out,
      /✓ Nothing critical was found, as far as logs show\. [^]*a\s+capture\s+also\s+shows/,
    );
    assert.doesNotMatch(out, /Not DNS/);
    const excluded = /Ruled out[^]*?\n\n/.exec(out)?.[0] ?? '';
    assert.match(excluded, /SERVFAIL of servers/);
    assert.doesNotMatch(excluded, /loss without a pattern|a network policy|server that is down/);
  });

  test('a log does not contain answers, so lookups by Alpine pods do not seem to end early', async () => {
    const packets = await play(pods('musl', 1, { lookups: 24 }), healthy, { seed: 4 });
    writeFileSync(at('alpine.pcap'), pcapFile(LINK.RAW, packets));
    const line = (port: number, name: string, type: string, rcode: string): string =>
      `[INFO] 10.244.1.1:${port} - ${port} "${type} IN ${name} udp 45 false 512" ${rcode} qr,aa,rd 61 0.0001s\n`;
    const log = Array.from(
      { length: 6 },
      (_, nth) =>
        ['A', 'AAAA']
          .map((type) =>
            line(40_000 + nth, 'redis.cache.shop.svc.cluster.local.', type, 'NXDOMAIN'),
          )
          .join('') +
        ['A', 'AAAA']
          .map((type) => line(41_000 + nth, 'redis.cache.svc.cluster.local.', type, 'NOERROR'))
          .join(''),
    ).join('');
    writeFileSync(at('alpine.log'), log);
    const { out } = await run(at('alpine.pcap'), at('alpine.log'));
    assert.match(out, /musl \d+ %/);
    assert.doesNotMatch(out, /^[✕!] ND2002/m);
    // Failed queries are answered after later ones.
    const failed = ['cart.', 'cart.shop.'].flatMap((name) =>
      ['A', 'AAAA'].map((type) => line(42_000, name, type, 'SERVFAIL')),
    );
    writeFileSync(at('failed.log'), failed.join('').repeat(3));
    const both = await run(at('alpine.pcap'), at('failed.log'));
    assert.match(both.out, /SERVFAIL/);
    assert.doesNotMatch(both.out, /^[✕!] ND2002/m);
  });

  test('all queries count although only the first clients are examined individually, and the number of others is reported', async () => {
    writeNodeCapture(at('crowd.pcap'), { packets: 18_000, trouble: 'crowd', sightings: 1 });
    const { out, err } = await run(at('crowd.pcap'), '-o', 'json', '--fail-on', 'never');
    const { totals, remarks } = JSON.parse(out) as {
      readonly totals: { readonly queries: number; readonly clients: number };
      readonly remarks: readonly { readonly text: string; readonly count: number }[];
    };
    assert.equal(totals.clients, 10_000);
    const left = remarks.find(({ text }) => text.startsWith('queries of clients beyond'));
    assert.equal(left?.count, totals.queries - 10_000);
    assert.match(err, /^ndots doctor: \d+ × queries of clients beyond the limit of 10000: /m);
  });

  test('a named pipe is read once', { timeout: 60_000 }, async () => {
    const packets = await play(
      everybody(30),
      (passing) =>
        passing.attempt === 1 && passing.random.integer(100) < 3
          ? { lost: true }
          : healthy(passing),
      { seed: 3 },
    );
    execFileSync('mkfifo', [at('pipe')]);
    const running = run(at('pipe'));
    await writeFile(at('pipe'), pcapFile(LINK.RAW, packets));
    assert.match((await running).out, /ND3013/);
  });

  test('a fault that begins in the middle of a capture is found like one at its start', async () => {
    const trouble = (passing: Passing): boolean =>
      passing.atMs > 20_000 && passing.type === 'AAAA' && !/cluster/.test(passing.name);
    const packets = await play(
      everybody(60),
      (passing) => (trouble(passing) ? { lost: true } : healthy(passing)),
      { seed: 3 },
    );
    writeFileSync(at('middle.pcap'), pcapFile(LINK.RAW, packets));
    const { out } = await run(at('middle.pcap'));
    assert.match(out.split('\n').find((line) => line.startsWith('✕')) ?? '', /^✕ ND3009/);
    assert.doesNotMatch(out, /ND3013/);
  });

  test('counters in a text rule out kernel faults', async () => {
    writeFileSync(at('conntrack.txt'), 'cpu=0 found=0 insert_failed=0 drop=0 clash_resolve=93\n');
    const { out } = await run(at('race.pcap'), at('conntrack.txt'), '--ruled-out');
    assert.doesNotMatch(out, /^✕ ND3001/m);
    assert.match(out, /the conntrack race: the kernel resolves the race/);
    writeFileSync(at('conntrack.txt'), 'cpu=0 found=0 insert_failed=93 drop=93 clash_resolve=0\n');
    const failed = await run(at('race.pcap'), at('conntrack.txt'));
    assert.match(failed.out, /ND3001 .*confidence 97 %/);
    assert.match(failed.out, /failed to insert 93 entries/);
  });

  test('JSON has findings, clients and frames', async () => {
    const { out } = await run(at('cut.pcap'), '-o', 'json');
    const document = JSON.parse(out) as {
      readonly findings: readonly {
        readonly code: string;
        readonly who: { readonly clients: number };
        readonly frames: readonly number[];
      }[];
      readonly not: readonly { readonly code: string }[];
    };
    assert.equal(document.findings[0]?.code, 'ND3004');
    assert.equal(document.findings[0].who.clients, 3);
    assert.ok(document.findings[0].frames.length > 10);
    assert.ok(document.not.some(({ code }) => code === 'ND3001'));
  });

  test('only selected findings are reported and affect the exit code', async () => {
    const { out, code } = await run(at('race.pcap'), '--only', 'ND2', '--fail-on', 'info');
    assert.equal(code, 1);
    assert.match(out, /ND2001/);
    assert.doesNotMatch(out, /ND3001/);
    // Otherwise, an informational finding takes three lines.
    assert.match(out, / {2}prove .*\n/);
    assert.match((await run(at('race.pcap'))).out, / {2}more +--only ND2001 prints the rest/);
    for (const words of [
      ['--only', 'ND5'],
      ['--skip', 'ND3'],
    ])
      assert.doesNotMatch((await run(at('race.pcap'), ...words)).out, /Not DNS/);
    assert.equal((await run(at('race.pcap'), '--skip', 'ND3001')).code, 0);
    assert.equal((await run(at('race.pcap'), '--fail-on', 'never')).code, 0);
  });

  test('the clients of a costly search path are reported, though its queries are only counted', async () => {
    const { out } = await run(at('race.pcap'), '-o', 'json', '--only', 'ND2001');
    const { findings } = JSON.parse(out) as {
      findings: readonly {
        who: { clients: number; groups: readonly { share: number }[]; resolvers: unknown[] };
      }[];
    };
    const { clients, groups, resolvers } = findings[0]!.who;
    assert.ok(clients > 0 && resolvers.length > 0);
    assert.ok(Math.abs(groups.reduce((sum, each) => sum + each.share, 0) - 1) < 1e-9);
  });

  test('clients that turn addresses into names are reported, even if names are cut', async () => {
    const about = stories.filter(({ code }) => code === 'ND2006');
    assert.ok(about.length > 1);
    for (const story of about) {
      writeFileSync(at('reverse.pcap'), pcapFile(LINK.RAW, await story.packets(1)));
      const { out } = await run(at('reverse.pcap'), '--only', 'ND2006');
      assert.match(out, /^ {2}who {5}\d+ clients? · 10\.244\.1\.\d+ \d+ %/m, story.name);
    }
  });

  test('the evidence is a capture with the same findings', async () => {
    await run(at('cut.pcap'), '--only', 'ND3004', '--evidence', at('evidence.pcapng'));
    const { out } = await run(at('evidence.pcapng'));
    assert.match(out, /ND3005/);
    assert.match(out, /3 clients/);
  });

  test('redaction removes all names and addresses', async () => {
    const { out } = await run(at('cut.pcap'), '--redact-key', 'k');
    assert.doesNotMatch(out, /10\.244\.1\.\d|10\.96\.0\.10/);
    assert.match(out, /ND3004/);
  });

  test('redaction removes names with commas, brackets, quotes or unprintable bytes', async () => {
    const names = [
      'secret\\.dot.hush.example.',
      'secret=pair.hush.example.',
      '\u001b[31msecretred.hush.example.',
      '"secretquote".hush.example.',
      'secret,comma.hush.example.',
      '(secretbracket).hush.example.',
      'sécret.hush.example.',
    ];
    for (const [nth, name] of names.entries()) {
      const lines = Array.from(
        { length: 60 },
        (_, at) =>
          `2026-11-22T03:00:${String(at).padStart(2, '0')}.000Z [INFO] 10.244.7.9:${40_000 + at} - ${at} "A IN ${name} udp 41 false 512" SERVFAIL qr,rd,ra 68 0.000990251s\n`,
      );
      writeFileSync(at(`odd${nth}.log`), lines.join(''));
      const plain = (await run(at(`odd${nth}.log`), '--fail-on', 'never')).out;
      assert.match(plain, /hush/);
      for (const format of ['text', 'json']) {
        const { out } = await run(at(`odd${nth}.log`), '--redact-key', 'k', '-o', format);
        assert.match(out, /ND4002/);
        assert.doesNotMatch(out, /secret|hush|10\.244\.7\.9|195/, `${name} as ${format}: ${out}`);
      }
    }
  });

  test('a file that is not a capture, and a capture without DNS, give exit code 2', async () => {
    writeFileSync(at('no.txt'), 'hello\n');
    writeFileSync(
      at('other.pcap'),
      pcapFile(LINK.RAW, [{ timeMs: 1, bytes: new Uint8Array(40).fill(0x45) }]),
    );
    for (const name of ['no.txt', 'other.pcap', 'nowhere.pcap']) {
      const { code, err } = await run(at(name));
      assert.equal(code, 2, name);
      assert.notEqual(err, '');
    }
    assert.equal((await run()).code, 3);
    assert.equal((await run('--only', 'x', 'a.pcap')).code, 3);
    for (const word of ['--only', '--skip']) {
      const { code, err } = await run(at('clean.pcap'), word, 'ND3,ND99');
      assert.equal(code, 3, word);
      assert.match(err, /there is no finding ND99\n/);
    }
  });

  test('if there are no queries and only one IP family, doctor mentions the other family', async () => {
    const way = { from: 'fd00:77::7', fromPort: 40_000, to: 'fd00:77::8', toPort: 8080 };
    writeFileSync(
      at('six.pcap'),
      pcapFile(LINK.RAW, [{ timeMs: 1, bytes: udpPacket(way, new Uint8Array(20)) }]),
    );
    const { code, err } = await run(at('six.pcap'));
    assert.equal(code, 2);
    assert.match(err, /All 1 packets are IPv6\. .* cannot query a name server at an IPv4 address/);
  });

  test('each finding is explained, under its own code and title', async () => {
    const page = readFileSync('docs/findings.md', 'utf8');
    const headings = [...page.matchAll(/^## (ND\d{4}) (.+)$/gm)].map(
      ([, code, title]) => `${code} ${title}`,
    );
    // Captures and running clusters use the same code and title for any cause that both can show.
    const all = new Set(findingKinds.map(({ code, title }) => `${code} ${title}`));
    assert.deepEqual(headings, [...all].toSorted());
    assert.equal(new Set([...all].map((each) => each.slice(0, 6))).size, all.size);
    // Two kinds that detect the same cause share its title.
    for (const way of ['inCapture', 'inCluster'] as const) {
      const kinds = findingKinds.filter((kind) => kind[way] !== undefined);
      const codes = new Set(kinds.map(({ code }) => code));
      assert.equal(new Set(kinds.map(({ code, name }) => `${code} ${name}`)).size, codes.size);
      if (way === 'inCluster') assert.equal(codes.size, kinds.length);
    }
    for (const { code, inCapture, inCluster } of findingKinds)
      assert.ok(inCapture !== undefined || inCluster !== undefined, `${code} is judged`);
    for (const { code } of findingKinds)
      assert.match((await run('--explain', code)).out, /\*\*Means:\*\*|\*\*Differs from\*\*/);
    const { code, err } = await run('--explain', 'ND3100');
    assert.equal(code, 3);
    assert.match(err, /Did you mean ND3/);
  });

  test('causes without a finding take one line, and --ruled-out lists them', async () => {
    const { out } = await run(at('race.pcap'));
    const [line = ''] = /^\d+ causes ruled out[^]*?\n\n/m.exec(out) ?? [];
    assert.match(
      line.replaceAll(/\s+/g, ' '),
      /^\d+ causes ruled out; \d+ causes cannot be checked with this input\. --ruled-out lists both\. $/,
    );
    assert.doesNotMatch(out, /an overloaded server: |Cannot be checked/);
    const { not, unknown } = JSON.parse((await run(at('race.pcap'), '-o', 'json')).out) as Record<
      'not' | 'unknown',
      readonly unknown[]
    >;
    assert.deepEqual(line.match(/\d+/g)?.map(Number), [not.length, unknown.length]);
  });

  test('truncated messages rule nothing out, and give no all-clear', async () => {
    const story = stories.find(({ name }) => name === 'clean: pods of all sorts')!;
    const packets = await story.packets(1);
    const cut = packets.map((each, i) =>
      i % 3 === 0 ? each : { ...each, bytes: each.bytes.subarray(0, 50) },
    );
    writeFileSync(at('snap.pcap'), pcapFile(LINK.RAW, cut));
    const { out } = await run(at('snap.pcap'), '--fail-on', 'never');
    assert.doesNotMatch(out, /Ruled out|Not DNS/);
    assert.match(out, /has only\s+the\s+beginning\s+of \d+ of \d+ messages/);
  });

  test('no cause appears in both lists', async () => {
    for (const name of ['race.pcap', 'clean.pcap', 'cut.pcap']) {
      const { not, unknown } = JSON.parse((await run(at(name), '-o', 'json')).out) as Record<
        'not' | 'unknown',
        readonly { readonly code: string }[]
      >;
      const codes = [...not, ...unknown].map(({ code }) => code);
      assert.equal(new Set(codes).size, codes.length, codes.toSorted().join(' '));
    }
  });

  test('a prefix of a code lists the matching findings', async () => {
    const { code, err } = await run('--explain', 'nd4');
    assert.equal(code, 3);
    assert.match(err, /ND4001 {2}A packet limit allows only a fixed number/);
    assert.match(err, /ND4010 /);
    assert.doesNotMatch(err, /ND3/);
  });

  test('a misspelled word cluster is not treated as a file', async () => {
    for (const word of ['clusters', 'Cluster', 'clsuter']) {
      const { code, err } = await run(word);
      assert.equal(code, 3, word);
      assert.match(err, /Did you mean cluster: ndots doctor cluster\?/);
    }
  });
});
