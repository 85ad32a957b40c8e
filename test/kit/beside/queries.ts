/** Generates random queries, well-formed and malformed. */
import type { Random } from '../../../src/server/base/random.ts';
import { drawFrom, drawName, labels, type Draw } from './words.ts';

export interface RandomQuery {
  readonly bytes: Uint8Array;
  readonly overTcp: boolean;
  readonly client: string;
  readonly text: string;
  readonly name: string;
  readonly type: number;
  readonly class: number;
  readonly opcode: number;
  readonly edns: boolean;
  readonly do: boolean;
  readonly ad: boolean;
  readonly size: number;
  /** True if a client should not send it. */
  readonly odd: boolean;
}

const usual = [1, 1, 1, 1, 28, 28, 28, 16, 15, 2, 6, 33, 5, 12, 255, 65, 13, 43, 48, 257];
const unusual = [
  0, 3, 10, 35, 39, 41, 46, 47, 50, 52, 64, 99, 249, 250, 251, 253, 254, 258, 65_280, 65_535,
];

/** Generates a query. Most are ordinary. */
export function randomQuery(random: Random, names: readonly string[]): RandomQuery {
  const draw = drawFrom(random);
  const lower = drawQueryName(draw, names);
  const name = draw.rarely(4) ? spelledOddly(lower, random) : lower;
  const type = draw.rarely(12) ? draw.one(unusual) : draw.one(usual);
  const qclass = draw.rarely(15) ? draw.one([3, 4, 255, 254, 0, 2]) : 1;
  const opcode = draw.rarely(40) ? draw.one([1, 2, 4, 5, 6, 15]) : 0;
  let flags = opcode << 11;
  if (!draw.rarely(6)) flags |= 0x0100;
  const ad = draw.rarely(4);
  if (ad) flags |= 0x20;
  if (draw.rarely(8)) flags |= 0x10;
  if (draw.rarely(40)) flags |= draw.one([0x40, 0x80, 0x400, 0x200]);
  const edns = draw.rarely(2);
  const size = edns ? draw.one([1232, 1232, 4096, 512, 1400, 0, 100, 65_535, 800]) : 0;
  const dnssecOk = edns && draw.rarely(3);
  const version = edns && draw.rarely(40) ? 1 : 0;
  const options = edns ? optionsOf(draw) : [];
  const questions = draw.rarely(100) ? draw.one([0, 2]) : 1;
  const overTcp = draw.rarely(4);
  const client = draw.one(['127.0.0.1', '127.0.0.1', '127.0.0.2', '127.0.0.3', '127.0.1.1']);
  const id = random.integer(65_536);
  const question = Buffer.concat([wire(name), u16(type), u16(qclass)]);
  const opt = edns
    ? Buffer.concat([
        Buffer.from([0, 0, 41]),
        u16(size),
        Buffer.from([0, version, dnssecOk ? 0x80 : 0, 0]),
        u16(options.reduce((sum, one) => sum + one.length, 0)),
        ...options,
      ])
    : Buffer.alloc(0);
  const bytes = Buffer.concat([
    ...[id, flags, questions, 0, 0, edns ? 1 : 0].map(u16),
    ...Array.from({ length: questions }, () => question),
    opt,
  ]);
  const shown = [
    `${name} type=${type} class=${qclass}`,
    opcode === 0 ? '' : `opcode=${opcode}`,
    `flags=${flags.toString(16)}`,
    edns
      ? `edns=${version}/${size}${dnssecOk ? '/do' : ''}[${options.map((one) => one.toString('hex')).join(' ')}]`
      : '',
    questions === 1 ? '' : `questions=${questions}`,
    overTcp ? 'tcp' : 'udp',
    client,
  ];
  return {
    bytes,
    overTcp,
    client,
    name: lower,
    type,
    class: qclass,
    opcode,
    edns,
    do: dnssecOk,
    ad,
    size,
    text: shown.filter((word) => word !== '').join(' '),
    odd: opcode !== 0 || questions !== 1 || version !== 0 || (flags & 0x6c0) !== 0,
  };
}

function drawQueryName(draw: Draw, names: readonly string[]): string {
  if (names.length > 0 && draw.rarely(2)) {
    const name = draw.one(names);
    return draw.rarely(4) ? `${draw.one(labels)}.${name === '.' ? '' : name}` : name;
  }
  if (draw.rarely(25))
    return draw.one([
      '.',
      'localhost.',
      'localhost.example.org.',
      'version.bind.',
      'id.server.',
      'hostname.bind.',
      '1.0.0.127.in-addr.arpa.',
      '10.2.0.192.in-addr.arpa.',
      '5.0.0.10.in-addr.arpa.',
      'org.',
      'com.',
      'a.b.c.d.e.f.g.h.example.org.',
      `${'l'.repeat(63)}.example.org.`,
      'a\\.b.example.org.',
      '*.example.org.',
      'x.*.test.',
      'b\\032c.test.',
      '\\255.test.',
    ]);
  return drawName(draw);
}

function optionsOf(draw: Draw): Buffer[] {
  const known = [
    () => option(3, Buffer.alloc(0)),
    () => option(8, Buffer.from([0, 1, 24, 0, 192, 0, 2])),
    () => option(8, Buffer.from([0, 2, 56, 0, 32, 1, 13, 184, 0, 0, 0])),
    () => option(10, Buffer.from('0102030405060708', 'hex')),
    () => option(12, Buffer.alloc(20)),
    () => option(0xffee, Buffer.from('efgh')),
    () => option(0xfff0, Buffer.alloc(0)),
    () => option(11, Buffer.alloc(0)),
    () => option(9, Buffer.alloc(0)),
    () => option(15, Buffer.from([0, 1])),
  ];
  return draw.rarely(2) ? [] : draw.some(known, 3).map((make) => make());
}

function option(code: number, data: Buffer): Buffer {
  return Buffer.concat([u16(code), u16(data.length), data]);
}

function u16(value: number): Buffer {
  return Buffer.from([value >> 8, value & 255]);
}

function spelledOddly(name: string, random: Random): string {
  return name.replaceAll(/[a-z]/g, (letter) =>
    random.integer(2) === 0 ? letter : letter.toUpperCase(),
  );
}

function wire(name: string): Buffer {
  const bytes: number[] = [];
  const labelsOf = name === '.' ? [] : (name.slice(0, -1).match(/(?:\\\d{3}|\\.|[^.\\])+/g) ?? []);
  for (const label of labelsOf) {
    const text = label.replaceAll(/\\(\d{3}|.)/g, (_, escaped: string) =>
      escaped.length === 3 ? String.fromCharCode(Number(escaped)) : escaped,
    );
    bytes.push(text.length, ...Buffer.from(text, 'latin1'));
  }
  return Buffer.from([...bytes, 0]);
}
