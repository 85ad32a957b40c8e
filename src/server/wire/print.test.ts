import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { describe, test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { recordSamples } from '../../../test/fuzz/record-samples.ts';
import { writeOption, type OptionContent } from './edns-option.ts';
import { readMessage, writeMessage, type DnsRecord, type Message } from './message.ts';
import { printMessage } from './print.ts';
import { parseRecord } from './zone-text.ts';

const message: Message = {
  id: 0,
  flags: 0x8580,
  rcode: 0,
  question: [{ name: 'www.example.org.', type: 1, class: 1 }],
  answer: [],
  authority: [],
  additional: [],
  edns: null,
};

function edns(options: readonly OptionContent[], dnssecOk = false): Message['edns'] {
  return { udpSize: 1232, version: 0, dnssecOk, options: options.map(writeOption) };
}

function records(...lines: string[]): DnsRecord[] {
  return lines.map((line) => parseRecord(line));
}

const cases: readonly (readonly [what: string, message: Message])[] = [
  ['an answer', { ...message, answer: records('www.example.org. 30 A 192.0.2.1') }],
  [
    'all sections',
    {
      ...message,
      answer: records(
        'www.example.org. 30 CNAME a.very.long.name.that.goes.past.the.columns.example.org.',
      ),
      authority: records(
        'example.org. 2147483647 NS ns1.example.org.',
        'twenty-two.example.org. 5 NS ns1.example.org.',
      ),
      additional: records(
        'ns1.example.org. 3600 A 192.0.2.53',
        'a.very.long.name.that.goes.past.the.columns.example.org. 5 AAAA ::1',
      ),
    },
  ],
  [
    'NXDOMAIN',
    {
      ...message,
      rcode: 3,
      authority: records('org. 30 SOA ns.org. root.org. 1 7200 900 1209600 86400'),
    },
  ],
  ['REFUSED', { ...message, rcode: 5, flags: 0x8100 }],
  ['no flags but QR and TC', { ...message, flags: 0x8200 }],
  ['AD and CD', { ...message, flags: 0x8130 }],
  ['OPT', { ...message, edns: edns([]) }],
  ['OPT with DO', { ...message, edns: edns([], true) }],
  ['BADVERS', { ...message, rcode: 16, edns: edns([]) }],
  [
    'a name server id',
    { ...message, edns: edns([{ kind: 'nsid', id: new TextEncoder().encode('ns "1"\n') }]) },
  ],
  [
    'client subnets',
    {
      ...message,
      edns: edns([
        { kind: 'ecs', address: '192.0.2.0', source: 24, scope: 0 },
        { kind: 'ecs', address: '2001:db8::', source: 56, scope: 48 },
      ]),
    },
  ],
  [
    'extended errors',
    {
      ...message,
      edns: edns([
        { kind: 'ede', code: 15, text: 'by policy' },
        { kind: 'ede', code: 22, text: '' },
        { kind: 'ede', code: 4000, text: '' },
      ]),
    },
  ],
  ['keepalive', { ...message, edns: edns([{ kind: 'keepalive', timeout: 305 }]) }],
  ['padding', { ...message, edns: edns([{ kind: 'padding', length: 20 }]) }],
  [
    'expire',
    {
      ...message,
      edns: edns([
        { kind: 'expire', seconds: 694_861 },
        { kind: 'expire', seconds: 604_800 },
      ]),
    },
  ],
  ['trust anchors', { ...message, edns: edns([{ kind: 'key-tag', tags: [19_036, 20_326] }]) }],
  [
    'an unknown option',
    { ...message, edns: edns([{ kind: 'other', code: 65_001, data: Uint8Array.of(1, 65) }]) },
  ],
];

/** dig rejects these owners or types in answers, or prints them as comments. */
const notForDig = new Set(['TSIG', 'TKEY', 'SIG', 'MD', 'MF']);

describe('messages as text', () => {
  test("have dig's sections, without the empty ones", () => {
    const text = printMessage({
      ...message,
      id: 4711,
      answer: records('www.example.org. 30 A 192.0.2.1'),
      edns: edns([{ kind: 'cookie', client: new Uint8Array(8), server: new Uint8Array(0) }], true),
    });
    assert.equal(
      text,
      `;; ->>HEADER<<- opcode: QUERY, status: NOERROR, id: 4711
;; flags: qr aa rd ra; QUERY: 1, ANSWER: 1, AUTHORITY: 0, ADDITIONAL: 1

;; OPT PSEUDOSECTION:
; EDNS: version: 0, flags: do; udp: 1232
; COOKIE: 0000000000000000
;; QUESTION SECTION:
;www.example.org.\t\tIN\tA

;; ANSWER SECTION:
www.example.org.\t30\tIN\tA\t192.0.2.1

`,
    );
  });

  for (const [what, said] of cases) {
    test(`${what}: dig prints the same`, async (t) => agree(t, said));
  }

  for (const [type, text] of recordSamples) {
    if (notForDig.has(type)) continue;
    test(`${type} ${text.slice(0, 60)}: dig prints the same`, async (t) => {
      const owner =
        type === 'NSEC3' ? '2T7B4G4VSA5SMI47K61MV5BV1A22BOJR.example.org.' : 'www.example.org.';
      await agree(t, { ...message, answer: records(`${owner} 300 ${type} ${text}`) });
    });
  }
});

/** Compares the result with dig's output for the message's bytes, which a local server sends. */
async function agree(t: TestContext, said: Message): Promise<void> {
  const theirs = await dig(said);
  if (theirs === null) return t.skip('dig is not installed');
  const [first, ...rest] = printMessage(readMessage(writeMessage(said))).split('\n');
  const [theirFirst, ...theirRest] = theirs.split('\n');
  assert.deepEqual(rest, theirRest);
  assert.equal(first!.replace(/id: \d+/, ''), theirFirst!.replace(/id: \d+/, ''));
}

async function dig(said: Message): Promise<string | null> {
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => {
    socket.send(writeMessage({ ...said, id: query.readUInt16BE(0) }), from.port, from.address);
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  try {
    const words = [
      '@127.0.0.1',
      '-p',
      String(socket.address().port),
      '-r',
      '+tries=1',
      '+ignore',
      '+nobadcookie',
      'www.example.org',
      'A',
    ];
    const { stdout } = await promisify(execFile)('dig', words);
    const begin = stdout.indexOf(';; ->>HEADER<<-');
    assert.ok(begin >= 0, stdout);
    // dig adds the warning about missing recursion, and everything after the sections.
    const text = stdout
      .slice(begin)
      .replace(/;; WARNING: recursion requested but not available\n/, '');
    return text.slice(0, text.indexOf(';; Query time:'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return null;
  } finally {
    socket.close();
  }
}
