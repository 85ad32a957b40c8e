/** The decoder for HPACK (RFC 7541). */
import { decodeHuffman } from './huffman.ts';

/** The static table (RFC 7541 appendix A) from index 15 on. Only `accept-encoding` has a value. */
const plainNames =
  'accept-charset accept-encoding accept-language accept-ranges accept access-control-allow-origin ' +
  'age allow authorization cache-control content-disposition content-encoding content-language ' +
  'content-length content-location content-range content-type cookie date etag expect expires from ' +
  'host if-match if-modified-since if-none-match if-range if-unmodified-since last-modified link ' +
  'location max-forwards proxy-authenticate proxy-authorization range referer refresh retry-after ' +
  'server set-cookie strict-transport-security transfer-encoding user-agent vary via www-authenticate';

/** The static table, whose index 0 is unused. */
const staticFields: readonly (readonly [name: string, value: string])[] = [
  ['', ''],
  [':authority', ''],
  [':method', 'GET'],
  [':method', 'POST'],
  [':path', '/'],
  [':path', '/index.html'],
  [':scheme', 'http'],
  [':scheme', 'https'],
  ...[200, 204, 206, 304, 400, 404, 500].map((status) => [':status', `${status}`] as const),
  ...plainNames
    .split(' ')
    .map((name) => [name, name === 'accept-encoding' ? 'gzip, deflate' : ''] as const),
];

interface HeaderField {
  readonly name: Uint8Array;
  readonly value: Uint8Array;
}

const fixed: readonly HeaderField[] = staticFields.map(([name, value]) => ({
  name: Buffer.from(name),
  value: Buffer.from(value),
}));

/** Size of the dynamic table. This is RFC 9113's initial value and is never changed here. */
const TABLE_SIZE = 4096;
/** Overhead of an entry in addition to its bytes (RFC 7541, section 4.1). */
const ENTRY_COST = 32;
/** Maximum size of a decoded header block in bytes. A 255-byte question in a GET takes 400. */
export const BLOCK_MAX = 16_384;
/** Maximum value of an integer in a block. */
const INTEGER_MAX = 1 << 24;

/** Buffers for decoded Huffman strings, a name and a value, valid for one field. */
const scratch = new Uint8Array(2 * BLOCK_MAX);

/**
 * Decodes the header blocks of one connection (HPACK, RFC 7541). Fields are byte ranges, and only the fields in use
 * become text.
 *
 * ```
 * decoder.begin(block, 0, block.length);
 * while (decoder.next()) …decoder.name[nameStart, nameEnd)…
 * if (decoder.broken) …the connection is unusable…
 * ```
 */
export class HeaderDecoder {
  /** The current field, valid until `next`. */
  name: Uint8Array = scratch;
  nameStart = 0;
  nameEnd = 0;
  value: Uint8Array = scratch;
  valueStart = 0;
  valueEnd = 0;
  /** True if a block was not valid HPACK, so the state of the table is lost. */
  broken = false;

  #bytes: Uint8Array = scratch;
  #at = 0;
  #end = 0;
  /** Bytes of `scratch` used by the current field. */
  #decoded = 0;
  /** The buffer that holds the last string. */
  #from: Uint8Array = scratch;
  #start = 0;
  /** True while the table size may still be changed, which is only before the first field. */
  #beginning = true;
  /** Oldest first. */
  readonly #table: HeaderField[] = [];
  #size = 0;
  #sizeMax = TABLE_SIZE;

  /** @param end at most BLOCK_MAX bytes after `start` */
  begin(bytes: Uint8Array, start: number, end: number): void {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
    this.#beginning = true;
  }

  /**
   * Reads the next field.
   * @returns false at the end of the block, or if it is malformed
   */
  next(): boolean {
    while (this.#at < this.#end && !this.broken) {
      const first = this.#bytes[this.#at]!;
      this.#decoded = 0;
      if ((first & 0x80) !== 0) return this.#indexed(this.#integer(0x7f));
      if ((first & 0xc0) === 0x40) return this.#literal(this.#integer(0x3f), true);
      if ((first & 0xe0) !== 0x20) return this.#literal(this.#integer(0x0f), false);
      const size = this.#integer(0x1f);
      if (size > TABLE_SIZE || !this.#beginning) this.broken = true;
      this.#sizeMax = size;
      this.#shrink(0);
    }
    return false;
  }

  #indexed(index: number): boolean {
    const field = this.#entry(index);
    if (field === null) return false;
    this.#beginning = false;
    this.name = field.name;
    this.nameStart = 0;
    this.nameEnd = field.name.length;
    this.value = field.value;
    this.valueStart = 0;
    this.valueEnd = field.value.length;
    return true;
  }

  #literal(index: number, remember: boolean): boolean {
    this.#beginning = false;
    const field = index > 0 ? this.#entry(index) : null;
    if (field !== null) {
      this.name = field.name;
      this.nameStart = 0;
      this.nameEnd = field.name.length;
    } else {
      if (this.broken) return false;
      const end = this.#string();
      if (end < 0) return false;
      this.name = this.#from;
      this.nameStart = this.#start;
      this.nameEnd = end;
    }
    const end = this.#string();
    if (end < 0) return false;
    this.value = this.#from;
    this.valueStart = this.#start;
    this.valueEnd = end;
    if (remember) this.#remember(field?.name ?? null);
    return true;
  }

  /**
   * Reads a string.
   * @returns the position of its end in `#from`, or -1 if it is malformed
   */
  #string(): number {
    if (this.#at >= this.#end) return this.#fail();
    const huffman = (this.#bytes[this.#at]! & 0x80) !== 0;
    const length = this.#integer(0x7f);
    const start = this.#at;
    if (length > this.#end - start) return this.#fail();
    this.#at = start + length;
    if (!huffman) {
      this.#from = this.#bytes;
      this.#start = start;
      return start + length;
    }
    if ((length * 8) / 5 > scratch.length - this.#decoded) return this.#fail();
    this.#from = scratch;
    this.#start = this.#decoded;
    const end = decodeHuffman(this.#bytes, start, start + length, scratch, this.#decoded);
    if (end < 0) return this.#fail();
    this.#decoded = end;
    return end;
  }

  /** Reads an integer in the low bits given by `mask` (RFC 7541 section 5.1). */
  #integer(mask: number): number {
    let value = this.#bytes[this.#at++]! & mask;
    if (value < mask) return value;
    for (let shift = 0; ; shift += 7) {
      if (this.#at >= this.#end || value > INTEGER_MAX) {
        this.broken = true;
        return INTEGER_MAX;
      }
      const byte = this.#bytes[this.#at++]!;
      value += (byte & 0x7f) * 2 ** shift;
      if ((byte & 0x80) === 0) return value;
    }
  }

  #entry(index: number): HeaderField | null {
    const found =
      index < fixed.length
        ? fixed[index]
        : this.#table[this.#table.length - 1 - (index - fixed.length)];
    if (index > 0 && found !== undefined && !this.broken) return found;
    this.broken = true;
    return null;
  }

  /** @param known the name if it was found in one of the tables and need not be copied */
  #remember(known: Uint8Array | null): void {
    const name = known ?? new Uint8Array(this.name.subarray(this.nameStart, this.nameEnd));
    const value = new Uint8Array(this.value.subarray(this.valueStart, this.valueEnd));
    const cost = name.length + value.length + ENTRY_COST;
    this.#shrink(cost);
    // An entry larger than the table empties it and is not added.
    if (cost > this.#sizeMax) return;
    this.#table.push({ name, value });
    this.#size += cost;
  }

  #shrink(cost: number): void {
    while (this.#table.length > 0 && this.#size + cost > this.#sizeMax) {
      const { name, value } = this.#table.shift()!;
      this.#size -= name.length + value.length + ENTRY_COST;
    }
  }

  #fail(): number {
    this.broken = true;
    return -1;
  }
}

/** Returns true if `bytes[start, end)` equals `other`. */
export function isSame(bytes: Uint8Array, start: number, end: number, other: Uint8Array): boolean {
  if (end - start !== other.length) return false;
  for (let i = 0; i < other.length; i++) if (bytes[start + i] !== other[i]) return false;
  return true;
}
