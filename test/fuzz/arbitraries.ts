/**
 * Arbitraries for property tests of the wire format. They cover everything that a message can contain and prefer edge
 * cases.
 */
import fc from 'fast-check';
import { printAddress } from '../../src/server/base/ip.ts';
import type { Edns } from '../../src/server/wire/edns.ts';
import { parseHex, printString } from '../../src/server/wire/encoding.ts';
import { typeNumber } from '../../src/server/wire/iana.ts';
import {
  readData,
  type DnsRecord,
  type Message,
  type Question,
} from '../../src/server/wire/message.ts';
import { printName, type WireName } from '../../src/server/wire/name.ts';
import { kindOf } from '../../src/server/wire/record/table.ts';
import { Reader } from '../../src/server/wire/reader.ts';
import { Opaque } from '../../src/server/wire/record/kind.ts';
import { recordSamples } from './record-samples.ts';

export const byte: fc.Arbitrary<number> = fc.integer({ min: 0, max: 255 });
export const word: fc.Arbitrary<number> = fc.integer({ min: 0, max: 0xffff });
export const long: fc.Arbitrary<number> = fc.integer({ min: 0, max: 0xffff_ffff });

/** Builds objects the way the code under test does, so that deepEqual only compares their contents. */
function plain<T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> {
  return fc.record(model, { noNullPrototype: true }) as fc.Arbitrary<T>;
}

export function bytes(minLength: number, maxLength: number): fc.Arbitrary<Uint8Array> {
  return fc.uint8Array({ minLength, maxLength });
}

/** Mostly plain letters, so that names share suffixes, but also arbitrary bytes and labels of full length. */
const label: fc.Arbitrary<Uint8Array> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.constantFrom('a', 'b', 'svc', 'SVC', 'cluster', 'local', '_tcp').map(ascii),
  },
  { weight: 2, arbitrary: bytes(1, 12) },
  { weight: 1, arbitrary: bytes(63, 63) },
);

export const wireName: fc.Arbitrary<WireName> = fc.array(label, { maxLength: 10 }).map((labels) => {
  const out: number[] = [];
  for (const one of labels) if (out.length + one.length + 2 <= 255) out.push(one.length, ...one);
  return Uint8Array.from([...out, 0]);
});

const name: fc.Arbitrary<string> = wireName.map((wire) => printName(wire));

const text: fc.Arbitrary<string> = bytes(0, 40).map(printString);

/** Data for the sampled types, parsed from the samples. */
const sampled: fc.Arbitrary<{ type: number; data: object }> = fc
  .constantFrom(...recordSamples)
  .map(([type, , hex]) => ({ type: typeNumber(type)!, data: readHex(typeNumber(type)!, hex) }));

const made: fc.Arbitrary<{ type: number; data: object }> = fc.oneof(
  plain({
    type: fc.constant(1),
    data: plain({ address: bytes(4, 4).map((ip) => printAddress(ip)) }),
  }),
  plain({
    type: fc.constant(28),
    data: plain({ address: bytes(16, 16).map((ip) => printAddress(ip)) }),
  }),
  plain({ type: fc.constantFrom(2, 5, 12, 39), data: plain({ target: name }) }),
  plain({ type: fc.constant(15), data: plain({ preference: word, exchange: name }) }),
  plain({
    type: fc.constant(33),
    data: plain({ priority: word, weight: word, port: word, target: name }),
  }),
  plain({
    type: fc.constant(16),
    data: plain({ strings: fc.array(text, { minLength: 1, maxLength: 4 }) }),
  }),
  plain({
    type: fc.constant(6),
    data: plain({
      mname: name,
      rname: name,
      serial: long,
      refresh: long,
      retry: long,
      expire: long,
      minimum: long,
    }),
  }),
  plain({
    type: fc.constant(47),
    data: plain({
      next: name,
      types: fc.uniqueArray(word, { maxLength: 20 }).map((all) => all.sort((a, b) => a - b)),
    }),
  }),
  plain({
    type: fc.integer({ min: 300, max: 0xffff }).filter((type) => kindOf(type) === undefined),
    data: bytes(0, 20).map((data) => new Opaque(data)),
  }),
);

export const record: fc.Arbitrary<DnsRecord> = plain({
  name,
  class: fc.constantFrom(1, 1, 1, 3, 254),
  ttl: long,
  typed: fc.oneof(made, made, sampled),
}).map(({ typed, ...rest }) => ({
  name: rest.name,
  type: typed.type,
  class: rest.class,
  ttl: rest.ttl,
  data: typed.data,
}));

export const question: fc.Arbitrary<Question> = plain({
  name,
  type: word,
  class: fc.constantFrom(1, 1, 3, 255),
});

export const edns: fc.Arbitrary<Edns> = plain({
  udpSize: word,
  version: byte,
  dnssecOk: fc.boolean(),
  z: fc.constantFrom(0, 0, 1, 0x7fff),
  options: fc.array(
    plain({ code: fc.oneof(fc.integer({ min: 0, max: 17 }), word), data: bytes(0, 24) }),
    { maxLength: 4 },
  ),
}).map(({ z, ...rest }) => (z === 0 ? rest : { ...rest, z }));

/** Any message whose TSIG, if present, is in the right place. */
export const message: fc.Arbitrary<Message> = plain({
  id: word,
  flags: word.map((flags) => flags & ~0xf),
  rcode: fc.integer({ min: 0, max: 0xfff }),
  question: fc.array(question, { maxLength: 2 }),
  answer: fc.array(record, { maxLength: 5 }),
  authority: fc.array(record, { maxLength: 3 }),
  additional: fc.array(record, { maxLength: 3 }),
  edns: fc.option(edns),
}).map((parts) => ({ ...parts, rcode: parts.edns === null ? parts.rcode & 15 : parts.rcode }));

/** A message from an upstream: a reply with one question, where most owners are the question's name. */
export const reply: fc.Arbitrary<Message> = plain({
  base: message,
  asked: question,
  own: fc.array(fc.boolean(), { minLength: 11, maxLength: 11 }),
}).map(({ base, asked, own }) => {
  let index = 0;
  const adopt = (one: DnsRecord): DnsRecord =>
    own[index++] === true ? { ...one, name: asked.name } : one;
  return {
    ...base,
    flags: base.flags | 0x8000,
    question: [asked],
    answer: base.answer.map(adopt),
    authority: base.authority.map(adopt),
    additional: base.additional.map(adopt),
  };
});

function readHex(type: number, hex: string): object {
  const data = parseHex(hex)!;
  return readData(new Reader(data), type, data.length);
}

function ascii(label: string): Uint8Array {
  return new TextEncoder().encode(label);
}
