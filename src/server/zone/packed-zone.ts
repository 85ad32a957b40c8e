/**
 * A zone as a few blocks of shared memory: the main thread packs it once, every worker answers from
 * the same bytes, and nothing in it ever changes.
 *
 * The zone is a tree of names with the apex as its root. Nodes are numbered in the canonical order
 * of DNSSEC (RFC 4034 section 6.1), which is the tree in preorder with sorted children. The apex is
 * 0. Names between two others that own nothing are nodes, too (empty non-terminals, RFC 4592
 * section 2.2.2).
 *
 * `nodes` has two numbers for each node, where it begins in `data` and its parent, and then one
 * node more that is the end. `data` holds, for each node: its flags (a byte), its label (a length
 * byte and the bytes as the zone file spells them), and its RRsets by ascending type. An RRset is
 *
 *     type (2 bytes), TTL (4 bytes), number of records, bytes of all records, the records,
 *     number of signatures, and if there are any: bytes of all signatures, the signatures
 *
 * where numbers are varints (seven bits a byte, lowest first), and a record or signature is its
 * length (a varint) and its data in wire form without compression. `slots` is an open hash table of
 * nodes by parent and label (lower case): `hashBytes` of the label after the parent's number. The
 * hash key is that of the process.
 */
export interface PackedZone {
  /** The apex: wire form, lower case. */
  readonly origin: Uint8Array;
  readonly data: Uint8Array;
  readonly nodes: Uint32Array;
  readonly slots: Uint32Array;
  /** Nodes that hold NSEC3 records of the chain that the apex names, in the order of their hashes. */
  readonly nsec3: Uint32Array;
  /** Records, signatures included. */
  readonly records: number;
  readonly serial: number;
}

/** Flags of a node, in addition to its RRsets. */
export const NODE: {
  readonly CUT: 1;
  readonly DNAME: 2;
  readonly WILD: 4;
  readonly ALIAS: 8;
  readonly HIDDEN: 16;
  readonly GLUE: 32;
} = {
  /** NS records below the apex: another zone begins here. */
  CUT: 1,
  DNAME: 2,
  /** It has a child `*`. */
  WILD: 4,
  /** CNAME. */
  ALIAS: 8,
  /** Only NSEC3 and its signatures: not a name that clients may query (RFC 5155 section 7.2.8). */
  HIDDEN: 16,
  /** Below a cut or a DNAME: not what this zone answers with authority. */
  GLUE: 32,
} as const;

/** The memory that a zone takes, bytes; none: 0. */
export function bytesOf(packed: PackedZone | null): number {
  if (packed === null) return 0;
  const { data, nodes, slots, nsec3 } = packed;
  return data.byteLength + nodes.byteLength + slots.byteLength + nsec3.byteLength;
}

/** The slot where the search for a hash begins. */
export function homeSlot(hash: number, slots: number): number {
  return Math.floor((hash * slots) / 0x1_0000_0000);
}

/**
 * The number of low bits of a slot that hold the node's number + 1. The others hold the low bits of
 * its hash, which exclude other labels quickly.
 */
export function nodeBits(nodes: number): number {
  return 32 - Math.clz32(nodes + 1);
}
