/**
 * Writes the fuzzer's corpus: `node test/fuzz/make-corpus.ts`. Each file is a small message (or an imitation), named
 * after its contents. Fixed findings from fuzzer runs are added by hand as `found-….bin`.
 */
import { writeFileSync } from 'node:fs';
import { parseHex } from '../../src/server/wire/encoding.ts';
import { typeNumber } from '../../src/server/wire/iana.ts';
import { writeMessage, type DnsRecord, type Message } from '../../src/server/wire/message.ts';
import { parseRecord } from '../../src/server/wire/zone-text.ts';
import { LooseWriter } from './loose-writer.ts';
import { recordSamples } from './record-samples.ts';

const directory = new URL('corpus/', import.meta.url);

const asked: Message = {
  id: 0x1234,
  flags: 0x0100,
  rcode: 0,
  question: [{ name: 'backend.critical-app.svc.cluster.local.', type: 1, class: 1 }],
  answer: [],
  authority: [],
  additional: [],
  edns: null,
};

const answered: Message = {
  ...asked,
  flags: 0x8580,
  answer: records('backend.critical-app.svc.cluster.local. 5 A 10.0.0.1'),
};

function records(...lines: string[]): DnsRecord[] {
  return lines.map((line) => parseRecord(line));
}

function edns(...options: [code: number, hex: string][]): Message['edns'] {
  const all = options.map(([code, hex]) => ({ code, data: parseHex(hex)! }));
  return { udpSize: 1232, version: 0, dnssecOk: true, options: all };
}

/** Builds a header with these counts, followed by the bytes in `hex`. */
function raw(
  counts: readonly [number, number, number, number],
  hex: string,
  flags = 0x8180,
): Uint8Array {
  const words = [1, flags, ...counts].flatMap((value) => [value >> 8, value & 0xff]);
  return Uint8Array.of(...words, ...parseHex(hex)!);
}

const soa =
  'cluster.local. 5 SOA ns.dns.cluster.local. hostmaster.cluster.local. 1 7200 1800 86400 5';
const chain = [
  'a.example. 30 CNAME b.example.',
  'b.example. 30 CNAME c.example.',
  'c.example. 30 A 192.0.2.1',
];
const question = '0161000001 0001'.replace(' ', '');

const corpus: Readonly<Record<string, Uint8Array>> = {
  query: writeMessage(asked),
  'query-edns': writeMessage({
    ...asked,
    edns: edns([10, '0102030405060708'], [8, '00011800c00002'], [12, '000000'], [3, '']),
  }),
  'query-root': writeMessage({ ...asked, question: [{ name: '.', type: 2, class: 1 }] }),
  'query-255': writeMessage({
    ...asked,
    question: [{ name: 'a.'.repeat(127), type: 255, class: 255 }],
  }),
  'query-tsig': writeMessage({
    ...asked,
    additional: records('key. 0 TSIG hmac-sha256. 1600000000 300 4 AQIDBA== 4711 NOERROR 0'),
    edns: edns(),
  }),
  notify: writeMessage({ ...asked, flags: 0x2400, answer: records(soa) }),
  answer: writeMessage(answered),
  'answer-edns': writeMessage({ ...answered, edns: edns([15, '00166e6f'], [3, '6e7331']) }),
  'answer-loose': writeMessage(
    { ...answered, authority: records(soa), edns: edns() },
    new LooseWriter(),
  ),
  nxdomain: writeMessage({ ...answered, rcode: 3, answer: [], authority: records(soa) }),
  chain: writeMessage({
    ...answered,
    question: [{ name: 'a.example.', type: 1, class: 1 }],
    answer: records(...chain),
  }),
  'chain-loose': writeMessage(
    {
      ...answered,
      question: [{ name: 'A.example.', type: 1, class: 1 }],
      answer: records(...chain),
    },
    new LooseWriter(),
  ),
  srv: writeMessage({
    ...answered,
    question: [{ name: '_http._tcp.web.default.svc.cluster.local.', type: 33, class: 1 }],
    answer: records(
      '_http._tcp.web.default.svc.cluster.local. 5 SRV 0 50 80 a.web.default.svc.cluster.local.',
      '_http._tcp.web.default.svc.cluster.local. 5 SRV 0 50 80 b.web.default.svc.cluster.local.',
    ),
    additional: records(
      'a.web.default.svc.cluster.local. 5 A 10.0.0.1',
      'b.web.default.svc.cluster.local. 5 AAAA ::1',
    ),
  }),
  'many-answers': writeMessage({
    ...answered,
    answer: Array.from(
      { length: 60 },
      (_, i) => records(`backend.critical-app.svc.cluster.local. 5 A 10.0.0.${i}`)[0]!,
    ),
  }),
  'counts-65535': raw(
    [1, 65_535, 65_535, 65_535],
    `${question}c00c00010001000000050004 0a000001`.replace(' ', ''),
  ),
  'questions-65535': raw([65_535, 0, 0, 0], question, 0x0100),
  'questions-0': raw([0, 0, 0, 0], '', 0x0100),
  'questions-2': raw([2, 0, 0, 0], question + question, 0x0100),
  'header-only-refused': raw([0, 0, 0, 0], '', 0x8185),
  'pointer-at-itself': raw([1, 0, 0, 0], 'c00c00010001'),
  'pointer-forward': raw([1, 0, 0, 0], 'c0100001000100'),
  'pointer-into-header': raw(
    [1, 1, 0, 0],
    `${question}c00000010001000000050004 0a000001`.replace(' ', ''),
  ),
  'pointer-loop': raw(
    [1, 2, 0, 0],
    `${question}c01500050001000000050002c013c01300010001000000050002c00c`,
  ),
  'pointer-cut': raw([1, 0, 0, 0], '0161c0'),
  'labels-255': raw([1, 0, 0, 0], `${'0161'.repeat(128)}0000010001`, 0x0100),
  'label-kind-01': raw([1, 0, 0, 0], '4161000000010001', 0x0100),
  'label-past-end': raw([1, 0, 0, 0], '3f6161', 0x0100),
  'data-past-end': raw([1, 1, 0, 0], `${question}c00c0001000100000005ffff0a000001`),
  'data-short': raw([1, 1, 0, 0], `${question}c00c00010001000000050003 0a0000`.replace(' ', '')),
  'opt-twice': raw(
    [1, 0, 0, 2],
    `${question}${'00002904d000000000 0000'.replace(' ', '').repeat(2)}`,
    0x0100,
  ),
  'opt-in-answer': raw([1, 1, 0, 0], `${question}00002904d0000000000000`),
  'opt-first': raw(
    [1, 0, 0, 2],
    `${question}00002904d00000000000000162c00c00010001000000050004 0a000001`.replace(' ', ''),
  ),
  'option-past-end': raw([1, 0, 0, 1], `${question}00002904d0000000000004000a00ff`, 0x0100),
  truncated: writeMessage(answered).subarray(0, 70),
  garbage: Uint8Array.from({ length: 200 }, (_, i) => (i * 167 + 13) & 0xff),
  zeros: new Uint8Array(64),
  ones: new Uint8Array(64).fill(0xff),
  empty: new Uint8Array(0),
};

for (const [type, , hex] of recordSamples) {
  const data = parseHex(hex)!;
  const head = [
    typeNumber(type)! >> 8,
    typeNumber(type)! & 0xff,
    0,
    1,
    0,
    0,
    0,
    5,
    data.length >> 8,
    data.length & 0xff,
  ];
  const record = Uint8Array.of(0xc0, 12, ...head, ...data);
  const bytes = Uint8Array.of(...raw([1, 1, 0, 0], question), ...record);
  writeFileSync(new URL(`record-${type.toLowerCase()}.bin`, directory), bytes);
}
for (const [name, bytes] of Object.entries(corpus))
  writeFileSync(new URL(`${name}.bin`, directory), bytes);
