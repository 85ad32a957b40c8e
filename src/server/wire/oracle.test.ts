import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';
import dnsPacket from 'dns-packet';
import fc from 'fast-check';
import * as any from '../../../test/fuzz/arbitraries.ts';
import { recordSamples } from '../../../test/fuzz/record-samples.ts';
import { printBase64, printHex } from './encoding.ts';
import { typeName, typeNumber } from './iana.ts';
import { readMessage, writeMessage, type DnsRecord, type Message } from './message.ts';
import { printData, printRecord } from './print.ts';
import { parseRecord } from './zone-text.ts';

/** Compares bytes and text with independent codecs. */

interface TheirRecord {
  readonly name: string;
  readonly type: string;
  readonly ttl?: number;
  readonly data?: unknown;
}

interface TheirMessage {
  readonly id?: number;
  readonly flags?: number;
  readonly questions?: readonly { readonly name: string; readonly type: string }[];
  readonly answers?: readonly TheirRecord[];
}

/** Record types that dns-packet can decode, converted to that library's own data format. */
const theirData: Readonly<Record<string, (data: never) => unknown>> = {
  A: ({ address }: { address: string }) => address,
  AAAA: ({ address }: { address: string }) => address,
  NS: ({ target }: { target: string }) => bare(target),
  CNAME: ({ target }: { target: string }) => bare(target),
  PTR: ({ target }: { target: string }) => bare(target),
  MX: ({ preference, exchange }: { preference: number; exchange: string }) => ({
    preference,
    exchange: bare(exchange),
  }),
  SRV: ({ priority, weight, port, target }: Record<string, number> & { target: string }) => ({
    priority,
    weight,
    port,
    target: bare(target),
  }),
};

/** dns-packet writes the root as `.`, and other names without a final dot. */
function bare(name: string): string {
  return name === '.' ? '.' : name.slice(0, -1);
}

/** Use only names with plain letters, because dns-packet does not support escapes. */
const plainName = fc
  .array(fc.constantFrom('a', 'bb', 'svc', 'cluster', 'local'), { minLength: 1, maxLength: 6 })
  .map((labels) => `${labels.join('.')}.`);

const plainRecord: fc.Arbitrary<DnsRecord> = fc.oneof(
  ...[
    fc.record({ type: fc.constant(1), data: fc.record({ address: fc.ipV4() }) }),
    fc.record({ type: fc.constantFrom(2, 5, 12), data: fc.record({ target: plainName }) }),
    fc.record({
      type: fc.constant(15),
      data: fc.record({ preference: any.word, exchange: plainName }),
    }),
    fc.record({
      type: fc.constant(33),
      data: fc.record({ priority: any.word, weight: any.word, port: any.word, target: plainName }),
    }),
  ].map((typed) =>
    fc
      .tuple(typed, plainName, any.long)
      .map(([{ type, data }, name, ttl]) => ({ name, type, class: 1, ttl, data })),
  ),
);

const plainMessage: fc.Arbitrary<Message> = fc
  .tuple(any.word, plainName, fc.array(plainRecord, { maxLength: 6 }))
  .map(([id, name, answer]) => ({
    id,
    flags: 0x8580,
    rcode: 0,
    question: [{ name, type: 1, class: 1 }],
    answer,
    authority: [],
    additional: [],
    edns: null,
  }));

describe('dns-packet', () => {
  test('reads messages written here as the same, including compressed names', () => {
    fc.assert(
      fc.property(plainMessage, (message) => {
        const theirs = dnsPacket.decode(Buffer.from(writeMessage(message))) as TheirMessage;
        assert.equal(theirs.id, message.id);
        assert.deepEqual(
          theirs.questions?.map(({ name, type }) => [name, type]),
          [[bare(message.question[0]!.name), 'A']],
        );
        assert.deepEqual(
          theirs.answers?.map(({ name, type, ttl, data }) => ({
            name,
            type,
            ttl,
            data: structuredClone(data),
          })),
          message.answer.map(({ name, type, ttl, data }) => ({
            name: bare(name),
            type: typeName(type),
            ttl,
            data: theirData[typeName(type)]!(data as never),
          })),
        );
      }),
    );
  });

  test('writes messages that are read here as the same', () => {
    fc.assert(
      fc.property(plainMessage, (message) => {
        const bytes = dnsPacket.encode({
          type: 'response',
          id: message.id,
          flags: 0x0580,
          questions: message.question.map(({ name }) => ({ name: bare(name), type: 'A' })),
          answers: message.answer.map(({ name, type, ttl, data }) => ({
            name: bare(name),
            type: typeName(type),
            ttl,
            data: theirData[typeName(type)]!(data as never),
          })),
        } as never);
        assert.deepEqual(JSON.stringify(readMessage(bytes)), JSON.stringify(message));
      }),
    );
  });
});

/**
 * Reads lines of `TYPE TAB WIRE-BASE64 TAB TEXT`. For each line, prints how dnspython encodes the text and how it reads
 * the bytes.
 */
const script = `
import sys, base64, dns.rdata, dns.message
for line in sys.stdin:
    kind, wire, text = line.rstrip('\\n').split('\\t')
    wire = base64.b64decode(wire)
    try:
        if kind == 'MESSAGE':
            message = dns.message.from_wire(wire)
            print(sum(len(section) for section in message.sections), 'records', message.id)
        else:
            made = dns.rdata.from_text('IN', kind, text, relativize=False)
            read = dns.rdata.from_wire('IN', kind, wire, 0, len(wire))
            print(made.to_wire().hex(), made == read)
    except Exception as error:
        print('error', repr(error))
`;

function dnspython(lines: readonly string[]): string[] | null {
  for (const python of ['/usr/bin/python3', 'python3']) {
    if (spawnSync(python, ['-c', 'import dns.message']).status !== 0) continue;
    const { stdout } = spawnSync(python, ['-c', script], {
      input: lines.map((line) => `${line}\n`).join(''),
      encoding: 'utf8',
    });
    return stdout.trimEnd().split('\n');
  }
  return null;
}

/**
 * dnspython 2.3 cannot parse text for these. It does not know KEY, SIG and some old and new types, its TSIG requires a
 * MAC, and its TKEY has different times.
 */
const notForPython = new Set(
  'KEY SIG TSIG TKEY MB MG MR MD MF MINFO RESINFO RKEY TALINK TA'.split(' '),
);

describe('dnspython', () => {
  test('encodes the text of every kind to the same bytes, and reads our bytes as the same', (t) => {
    const rows = recordSamples.filter(([type]) => !notForPython.has(type));
    const lines = rows.map(([type, text, hex]) => {
      const wire = printBase64(Buffer.from(hex, 'hex'));
      return [
        type,
        wire,
        printData(typeNumber(type)!, parseRecord(`x. ${type} ${text}`).data),
      ].join('\t');
    });
    const theirs = dnspython(lines);
    if (theirs === null) return t.skip('dnspython is not installed');
    rows.forEach(([type, text, hex], index) =>
      assert.equal(theirs[index], `${hex} True`, `${type} ${text}`),
    );
    return undefined;
  });

  test('reads messages written here', (t) => {
    const messages = fc.sample(
      any.reply.map((one) => ({
        ...one,
        flags: 0x8400,
        edns: one.edns === null ? null : { ...one.edns, options: [] },
      })),
      { numRuns: 200, seed: 7 },
    );
    // dnspython verifies message signatures, and rejects empty data and update classes in an answer.
    const fit = messages.filter(({ answer, authority, additional }) =>
      [...answer, ...authority, ...additional].every(
        ({ type, class: rclass }) =>
          type !== 250 && type !== 249 && rclass === 1 && !notForPython.has(typeName(type)),
      ),
    );
    assert.ok(fit.length > 20);
    const theirs = dnspython(
      fit.map((one) => ['MESSAGE', printBase64(writeMessage(one)), ''].join('\t')),
    );
    if (theirs === null) return t.skip('dnspython is not installed');
    fit.forEach((one, index) => {
      const text = [...one.answer, ...one.authority, ...one.additional]
        .map((record) => printRecord(record))
        .join('\n');
      assert.match(
        theirs[index]!,
        new RegExp(`^\\d+ records ${one.id}$`),
        `${theirs[index]}\n${text}\n${printHex(writeMessage(one))}`,
      );
    });
    return undefined;
  });
});
