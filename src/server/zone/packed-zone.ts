/**
 * A zone as a few blocks of shared memory. The main thread packs it once, every worker answers from the same bytes, and
 * nothing in it ever changes.
 *
 * The zone is a tree of names with the apex as its root. Nodes are numbered in DNSSEC's canonical order (RFC 4034
 * section 6.1), which is the tree in preorder with sorted children. The apex is 0. Names between two others that own
 * nothing are nodes, too (empty non-terminals, RFC 4592 section 2.2.2).
 *
 * `nodes` has two numbers for each node, its start in `data` and its parent, followed by one more node that marks the
 * end. `data` contains, for each node: its flags (a byte), its label (a length byte and the bytes as spelled in the
 * zone file), and its RRsets by ascending type. An RRset is
 *
 *     type (2 bytes), TTL (4 bytes), number of records, bytes of all records, the records,
 *     number of signatures, and if there are any: bytes of all signatures, the signatures
 *
 * where numbers are varints (seven bits per byte, lowest first), and a record or signature is its length (a varint) and
 * its data in uncompressed wire form. `slots` is an open hash table of nodes by parent and label (lower case):
 * `hashBytes` of the label after the parent's number. The hash key is the process's.
 */
export interface PackedZone {
  /** The apex in wire form and lower case. */
  readonly origin: Uint8Array;
  readonly data: Uint8Array;
  readonly nodes: Uint32Array;
  readonly slots: Uint32Array;
  /** The nodes that have NSEC3 records in the chain listed at the apex, in hash order. */
  readonly nsec3: Uint32Array;
  /** Number of records, including signatures. */
  readonly records: number;
  readonly serial: number;
}

/** A node's flags, in addition to its RRsets. */
export const NODE = {
  /** The node has NS records and is below the apex, so another zone begins here. */
  CUT: 1,
  DNAME: 2,
  /** It has a child `*`. */
  WILD: 4,
  /** CNAME. */
  ALIAS: 8,
  /** The node has only NSEC3 and its signatures, so clients cannot query its name (RFC 5155 section 7.2.8). */
  HIDDEN: 16,
  /** The node is below a cut or a DNAME, so its data is not authoritative. */
  GLUE: 32,
} as const;

/** Returns how much memory a zone uses, in bytes; 0 if there is none. */
export function bytesOf(packed: PackedZone | null): number {
  if (packed === null) return 0;
  const { data, nodes, slots, nsec3 } = packed;
  return data.byteLength + nodes.byteLength + slots.byteLength + nsec3.byteLength;
}

/** Returns the slot where the search for a hash begins. */
export function homeSlot(hash: number, slots: number): number {
  return Math.floor((hash * slots) / 0x1_0000_0000);
}

/**
 * Returns how many low bits of a slot contain the node's number + 1. The others contain the low bits of its hash, which
 * quickly rule out other labels.
 */
export function nodeBits(nodes: number): number {
  return 32 - Math.clz32(nodes + 1);
}
