/** Tests every command that prints untrusted text, using input that a terminal would interpret or hide. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { back, dnsMessage, pcapFile, udpPacket } from '../../../test/kit/packets.ts';
import { runCommand } from '../../../test/kit/trace-command.ts';
import { LINK } from '../../tools/capture/read/packets/frame.ts';
import { typeName } from '../../server/wire/iana.ts';
import { readMessage, writeMessage } from '../../server/wire/message.ts';
import { isVerb, type VerbName } from './verb-names.ts';
import { loadVerb } from './verbs.ts';

/** Includes our own green, which untrusted text must not be able to produce. */
const hostile =
  '\u0007\u0008\u001b[2J\u001b[32mFORGED\u001b[8m\u001b]0;t\u0007\u007f\u009b31m\u0085\u200b\u200e\u202e\u2066\u2069\u061c\ufeff\u2028\u{e0041}END';
const hostileLines = `a\n;; ANSWER SECTION:\rb${hostile}`;
// eslint-disable-next-line no-control-regex -- matches our own escapes
const ours = /\u001b\[\d+m/g;
const hidden = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}]/u;

const directory = mkdtempSync(join(tmpdir(), 'ndots-foreign-'));
after(() => rmSync(directory, { recursive: true, force: true }));
const file = (name: string, content: string | Uint8Array): string => {
  const path = join(directory, name);
  writeFileSync(path, content);
  return path;
};

/** A SERVFAIL reply with an Extended DNS Error and a TXT record. */
function reply(query: Uint8Array): Uint8Array {
  const { id, question, edns } = readMessage(query);
  const [{ name, type }] = question as [{ name: string; type: number; class: number }];
  const isText = typeName(type) === 'TXT';
  const text = new TextEncoder().encode(hostile);
  const ede = Uint8Array.of(0, 15, ...new TextEncoder().encode(hostileLines));
  return writeMessage({
    id,
    rcode: isText ? 0 : 2,
    flags: 0x8180,
    question,
    answer: isText ? [{ name, type, class: 1, ttl: 5, data: { strings: [text] } }] : [],
    authority: [],
    additional: [],
    edns: edns === null ? null : { ...edns, udpSize: 1232, options: [{ code: 15, data: ede }] },
  });
}

const corefile = file(
  'Corefile',
  `${'# Plain words, so that the file is read as text.\n'.repeat(12)}# ${hostile}\n.:53 {\n  forward . 192.0.2.53${hostile.slice(0, 2)} # ${hostile}\n  cacheX${hostile} 30\n  errors\n}\n`,
);
const conf = file('resolv.conf', 'search a.test\nnameserver 127.0.0.1\noptions timeout:1 edns0\n');
const hosts = file('hosts', '127.0.0.1 localhost\n');
const log = file(
  'errors.log',
  `[INFO] 10.1.2.3:40000 - 7 "A IN www${hostile}.example.com. udp 33 false 512" SERVFAIL qr 60 0.25s\n` +
    `[ERROR] plugin/errors: 2 www${hostile}.example.com. A: read udp 10.0.0.1:53->192.0.2.1:53: i/o timeout${hostile}\n`.repeat(
      40,
    ),
);
const ends = { from: '10.244.1.5', fromPort: 40_000, to: '10.96.0.10', toPort: 53 };
const edns = { version: 0, udpSize: 1232, dnssecOk: false, options: [] };
const asked = dnsMessage('www.example.com.', 'A', { edns });
const pcap = file(
  'hostile.pcap',
  pcapFile(
    LINK.RAW,
    Array.from({ length: 50 }, (_, index) => [
      { timeMs: 1e12 + index * 20, bytes: udpPacket(ends, asked) },
      { timeMs: 1e12 + index * 20 + 1, bytes: udpPacket(back(ends), reply(asked)) },
    ]).flat(),
  ),
);
const manifests = join(directory, 'manifests');
mkdirSync(manifests);
writeFileSync(
  join(manifests, 'pod.yaml'),
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'coredns', namespace: 'kube-system' },
    data: { Corefile: `.:53 {\n  bogus${hostile}\n}\n` },
  }),
);

describe('untrusted text is printed without characters that a terminal interprets or hides', () => {
  let server: Socket;
  let at: string;
  before(async () => {
    server = createSocket('udp4', (query, from) => {
      server.send(reply(query), from.port, from.address);
    });
    await new Promise<void>((resolve) => server.bind(0, '127.0.0.1', resolve));
    at = `@127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => server.close());

  const forms = (words: string, outputs: string): string[] =>
    outputs.split(' ').map((output) => `${words} -o ${output}`);
  const cases = [
    ...['A', 'A --json', 'TXT', 'TXT +short', 'TXT --json'].map(
      (more) => `query www.example.com @ ${more}`,
    ),
    ...forms(
      `trace www.example.com @ --resolv-conf ${conf} --hosts ${hosts}`,
      'text wide json html dig',
    ),
    `trace www.example.com @ --resolv-conf ${conf} --hosts ${hosts} --compare --client glibc,musl`,
    ...forms(`lint ${corefile}`, 'text json sarif github junit'),
    ...forms(`lint ${manifests}`, 'text json sarif github junit'),
    `lint ${corefile} --fix --diff`,
    `diff ${corefile} ${corefile}`,
    ...[log, pcap].flatMap((path) => [
      ...forms(`capture ${path}`, 'text flow clients json'),
      ...forms(`doctor ${path}`, 'text json'),
      `plan ${path}`,
    ]),
    `trace ${hostile} --answers ${corefile}`,
    `query ${hostile} @`,
    `${hostile}`,
  ];
  for (const words of cases)
    for (const colour of [false, true])
      test(`ndots ${JSON.stringify(words.replaceAll(directory, '.'))}${colour ? ', in colour' : ''}`, async () => {
        const [verb = '', ...rest] = words.replace(/@/, at).split(' ');
        if (!isVerb(verb)) return;
        const command = await loadVerb(verb as VerbName);
        const { out, err } = await runCommand(command, rest, {}, { colour, columns: 80 });
        const text = `${out}${err}`;
        assert.notEqual(text, '');
        assert.doesNotMatch(colour ? text.replace(ours, '') : text, hidden);
        assert.ok(!text.includes('\u001b[32mFORGED'));
        assert.doesNotMatch(text, /^;; ANSWER SECTION:.*b/m);
      });

  test('the program writes the same through a pipe and to a terminal', () => {
    const flags = process.execArgv.filter((word) => !word.startsWith('--test'));
    const words = [process.execPath, ...flags, 'src/faces/cli/main.ts', 'lint', corefile];
    const piped = spawnSync(words[0]!, words.slice(1), { encoding: 'utf8' });
    assert.match(piped.stdout, /\\u001b\[2J/);
    assert.doesNotMatch(piped.stdout, hidden);
    const onTerminal = spawnSync(
      'script',
      ['-qec', words.map((word) => `'${word}'`).join(' '), '/dev/null'],
      { encoding: 'utf8', env: { ...process.env, TERM: 'xterm', NO_COLOR: undefined } },
    );
    assert.match(onTerminal.stdout, ours);
    assert.match(onTerminal.stdout, /\\u001b\[2J/);
    const rest = onTerminal.stdout.replaceAll('\r\n', '\n').replace(ours, '');
    assert.doesNotMatch(rest.replaceAll('\r\u001b[K', ''), hidden);
  });
});
