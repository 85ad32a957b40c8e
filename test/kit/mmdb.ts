/** Builds databases in MaxMind's format for tests. */
import { parseNet } from '../../src/server/base/ip.ts';

/** A value in MaxMind's format. Fractions are stored as doubles, other numbers with 32 bits, and bigints with 64. */
export type MmdbValue =
  | string
  | number
  | bigint
  | boolean
  | readonly MmdbValue[]
  | { readonly [key: string]: MmdbValue };

/** Two children, each of which is the index of a node, data, or nothing. */
type Node = [Child, Child];
type Child = number | { readonly data: number } | null;

/**
 * Builds a database in MaxMind's format (MaxMind DB File Format Specification 2.0). It is an IPv6 tree with the IPv4
 * prefixes under ::/96 and 24-bit records in its nodes.
 * @param prefixes the data by prefix; a nested prefix must come after the one that contains it
 */
export function makeMmdb(type: string, prefixes: Readonly<Record<string, MmdbValue>>): Buffer {
  const nodes: Node[] = [[null, null]];
  const chunks: Buffer[] = [];
  let size = 0;
  for (const [prefix, value] of Object.entries(prefixes)) {
    const chunk = encode(value);
    insert(nodes, prefix, size);
    chunks.push(chunk);
    size += chunk.length;
  }
  const tree = Buffer.alloc(nodes.length * 6);
  nodes.forEach((node, index) => {
    node.forEach((child, side) => {
      const record =
        child === null
          ? nodes.length
          : typeof child === 'number'
            ? child
            : nodes.length + 16 + child.data;
      tree.writeUIntBE(record, index * 6 + side * 3, 3);
    });
  });
  const metadata = encode({
    binary_format_major_version: 2,
    binary_format_minor_version: 0,
    build_epoch: 1_700_000_000,
    database_type: type,
    description: { en: 'made by a test' },
    ip_version: 6,
    languages: ['en'],
    node_count: nodes.length,
    record_size: 24,
  });
  const marker = Buffer.concat([Buffer.of(0xab, 0xcd, 0xef), Buffer.from('MaxMind.com')]);
  return Buffer.concat([tree, Buffer.alloc(16), ...chunks, marker, metadata]);
}

function insert(nodes: Node[], text: string, data: number): void {
  const net = parseNet(text);
  if (net === null) throw new Error(`no net: ${text}`);
  const { bytes, bits } = net;
  const whole = bytes.length === 4 ? Buffer.concat([Buffer.alloc(12), bytes]) : bytes;
  const depth = bytes.length === 4 ? bits + 96 : bits;
  let node = 0;
  for (let bit = 0; bit < depth; bit++) {
    const side = (whole[bit >> 3]! >> (7 - (bit & 7))) & 1;
    if (bit === depth - 1) {
      nodes[node]![side] = { data };
      return;
    }
    const child = nodes[node]![side]!;
    if (typeof child === 'number') node = child;
    else {
      // The outer prefix's data applies to both halves.
      nodes.push([child, child]);
      nodes[node]![side] = nodes.length - 1;
      node = nodes.length - 1;
    }
  }
}

function encode(value: MmdbValue): Buffer {
  if (typeof value === 'string') {
    const bytes = Buffer.from(value);
    return Buffer.concat([control(2, bytes.length), bytes]);
  }
  if (typeof value === 'boolean') return control(14, value ? 1 : 0);
  if (typeof value === 'bigint') {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64BE(value);
    return Buffer.concat([control(9, 8), bytes]);
  }
  if (typeof value === 'number') {
    if (Number.isInteger(value)) {
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32BE(value);
      return Buffer.concat([control(6, 4), bytes]);
    }
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleBE(value);
    return Buffer.concat([control(3, 8), bytes]);
  }
  if (Array.isArray(value)) return Buffer.concat([control(11, value.length), ...value.map(encode)]);
  const entries = Object.entries(value as { readonly [key: string]: MmdbValue });
  return Buffer.concat([
    control(7, entries.length),
    ...entries.flatMap(([key, each]) => [encode(key), encode(each)]),
  ]);
}

/** The control byte, or two bytes for the later types, for sizes up to 284. */
function control(type: number, size: number): Buffer {
  const low = Math.min(size, 29);
  const head = type <= 7 ? [(type << 5) | low] : [low, type - 7];
  return Buffer.of(...head, ...(size >= 29 ? [size - 29] : []));
}
