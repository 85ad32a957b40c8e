import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { classify, hasExpiredSignature, type ReplyKind } from './classify.ts';
import { FLAG, OPCODE, RCODE, TYPE } from './iana.ts';
import type { DnsRecord, Message } from './message.ts';
import { writeMessage } from './message.ts';
import { failure, Reply } from './reply.ts';
import { parseRecord } from './zone-text.ts';

interface Said {
  readonly answer?: readonly string[];
  readonly authority?: readonly string[];
  readonly rcode?: number;
  readonly flags?: number;
}

function reply({ answer = [], authority = [], rcode = 0, flags = 0 }: Said): Reply {
  const records = (lines: readonly string[]): DnsRecord[] => lines.map((line) => parseRecord(line));
  const message: Message = {
    id: 0,
    flags: FLAG.QR | flags,
    rcode,
    question: [{ name: 'a.example.', type: TYPE.A, class: 1 }],
    answer: records(answer),
    authority: records(authority),
    additional: [],
    edns: null,
  };
  const bytes = writeMessage(message);
  return new Reply(bytes, 0, bytes.length, rcode, 'test');
}

const soa = 'example. SOA ns. root. 1 2 3 4 5';
const ns = 'example. NS ns.example.';

const rows: readonly (readonly [what: string, said: Said, kind: ReplyKind])[] = [
  ['an address for the name', { answer: ['a.example. A 10.0.0.1'] }, 'answer'],
  ['the name in another spelling', { answer: ['A.EXAMPLE. A 10.0.0.1'] }, 'answer'],
  [
    'a CNAME and the address of its target',
    { answer: ['a.example. CNAME b.example.', 'b.example. A 10.0.0.1'] },
    'answer',
  ],
  [
    'the chain in the wrong order',
    { answer: ['b.example. A 10.0.0.1', 'a.example. CNAME b.example.'] },
    'answer',
  ],
  [
    'a CNAME to a name without that type, with SOA',
    { answer: ['a.example. CNAME b.example.'], authority: [soa] },
    'nodata',
  ],
  [
    'a CNAME that leads nowhere, without SOA',
    { answer: ['a.example. CNAME b.example.'] },
    'unfinished',
  ],
  ['an address of an unrelated name', { answer: ['b.example. A 10.0.0.1'] }, 'unfinished'],
  [
    'a loop of CNAMEs',
    { answer: ['a.example. CNAME b.example.', 'b.example. CNAME a.example.'] },
    'unfinished',
  ],
  [
    'two CNAMEs for one owner, with addresses and SOA',
    {
      answer: [
        'a.example. CNAME b.example.',
        'a.example. CNAME c.example.',
        'b.example. A 10.0.0.1',
        'c.example. A 10.0.0.2',
      ],
      authority: [soa],
    },
    'unfinished',
  ],
  [
    'the same CNAME twice, in two spellings',
    {
      answer: [
        'a.example. CNAME b.example.',
        'A.example. CNAME B.example.',
        'b.example. A 10.0.0.1',
      ],
    },
    'answer',
  ],
  [
    'a loop of CNAMEs beside addresses, with SOA',
    {
      answer: [
        'a.example. CNAME b.example.',
        'b.example. CNAME a.example.',
        'a.example. A 10.0.0.1',
        'b.example. A 10.0.0.2',
      ],
      authority: [soa],
    },
    'unfinished',
  ],
  [
    'a CNAME beside an address: the address of its target counts',
    {
      answer: ['a.example. CNAME b.example.', 'a.example. A 10.0.0.1', 'b.example. A 10.0.0.2'],
    },
    'answer',
  ],
  [
    'a CNAME beside an address, without its target',
    { answer: ['a.example. CNAME b.example.', 'a.example. A 10.0.0.1'] },
    'unfinished',
  ],
  ['another type of the name', { answer: ['a.example. AAAA ::1'] }, 'unfinished'],
  ['nothing, with SOA', { authority: [soa] }, 'nodata'],
  ['nothing, with SOA and NS', { authority: [ns, soa] }, 'nodata'],
  ['nothing, with NS only', { authority: [ns] }, 'referral'],
  ['nothing at all', {}, 'empty'],
  ['NXDOMAIN with SOA', { rcode: RCODE.NXDOMAIN, authority: [soa] }, 'nxdomain'],
  ['NXDOMAIN without SOA', { rcode: RCODE.NXDOMAIN }, 'other'],
  [
    'NXDOMAIN behind a CNAME',
    { rcode: RCODE.NXDOMAIN, answer: ['a.example. CNAME b.example.'], authority: [soa] },
    'other',
  ],
  ['SERVFAIL', { rcode: RCODE.SERVFAIL }, 'failure'],
  ['NOTIMP', { rcode: RCODE.NOTIMP }, 'failure'],
  ['REFUSED', { rcode: RCODE.REFUSED }, 'other'],
  ['FORMERR', { rcode: RCODE.FORMERR }, 'other'],
  ['a truncated answer', { answer: ['a.example. A 10.0.0.1'], flags: FLAG.TC }, 'other'],
  ['a reply to NOTIFY', { flags: OPCODE.NOTIFY << 11 }, 'other'],
  ['a reply to UPDATE', { flags: OPCODE.UPDATE << 11 }, 'other'],
];

describe('classification of replies for the cache', () => {
  for (const [what, said, kind] of rows) {
    test(`${what} is ${kind}`, () => assert.equal(classify(reply(said), TYPE.A), kind));
  }

  test('a CNAME answers queries for CNAME or ANY', () => {
    const alias = reply({ answer: ['a.example. CNAME b.example.'] });
    assert.equal(classify(alias, TYPE.CNAME), 'answer');
    assert.equal(classify(alias, TYPE.ANY), 'answer');
    assert.equal(classify(alias, TYPE.AAAA), 'unfinished');
  });

  test('zone transfers and bare result codes are never stored', () => {
    assert.equal(classify(reply({ answer: ['a.example. A 10.0.0.1'] }), TYPE.AXFR), 'other');
    assert.equal(classify(reply({}), TYPE.IXFR), 'other');
    assert.equal(classify(failure(RCODE.SERVFAIL, 'forward'), TYPE.A), 'other');
  });

  test('a CNAME chain is followed in any order, but not forever', () => {
    const chain = (length: number): string[] => [
      ...Array.from({ length }, (_, i) => `n${i}.example. CNAME n${i + 1}.example.`),
      `n${length}.example. A 10.0.0.1`,
    ];
    const long = ['a.example. CNAME n0.example.', ...chain(20)];
    assert.equal(classify(reply({ answer: long }), TYPE.A), 'answer');
    assert.equal(classify(reply({ answer: long.toReversed() }), TYPE.A), 'answer');
    assert.equal(
      classify(reply({ answer: ['a.example. CNAME n0.example.', ...chain(100)] }), TYPE.A),
      'unfinished',
    );
  });
});

describe('signatures', () => {
  const rrsig = (until: number): string =>
    `a.example. RRSIG A 8 2 30 ${until} ${until - 100} 1 example. AQID`;

  test('an expired signature is detected', () => {
    const signed = reply({ answer: ['a.example. A 10.0.0.1', rrsig(1_700_000_000)] });
    assert.equal(hasExpiredSignature(signed, 1_699_999_999), false);
    assert.equal(hasExpiredSignature(signed, 1_700_000_000), false);
    assert.equal(hasExpiredSignature(signed, 1_700_000_001), true);
    assert.equal(hasExpiredSignature(reply({}), 1_700_000_001), false);
  });

  test('times are compared in serial arithmetic, beyond 2038 and 2106', () => {
    const late = reply({ answer: [rrsig(4_000_000_000)] });
    assert.equal(hasExpiredSignature(late, 3_900_000_000), false);
    assert.equal(hasExpiredSignature(late, 4_000_000_001), true);
    const wrapped = reply({ answer: ['a.example. RRSIG A 8 2 30 100 0 1 example. AQID'] });
    assert.equal(hasExpiredSignature(wrapped, 4_294_967_000), false);
  });
});
