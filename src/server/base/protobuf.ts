/**
 * The Protocol Buffers wire format. No code is generated. Each user (dnstap, etcd, gRPC, spans, metrics) reads and
 * writes its messages field by field.
 */

/** Wire types, which define how a field's value is encoded (Protocol Buffers, "Encoding"). */
export const WIRE = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

const { varint: VARINT, fixed64: FIXED64, bytes: BYTES, fixed32: FIXED32 } = WIRE;

/** Thrown for bytes that are not a message, or not of the expected type. */
export class MessageError extends Error {
  override readonly name = 'MessageError';
}

/** Builds one message. As in proto3, fields with default values are omitted. */
export class MessageBuilder {
  readonly #parts: Buffer[] = [];

  /** Writes a non-negative integer, or a signed 64-bit integer given as `bigint`. */
  number(field: number, value: number | bigint): this {
    if (value === 0 || value === 0n) return this;
    this.#parts.push(varint((field << 3) | VARINT), varint(value));
    return this;
  }

  flag(field: number, value: boolean): this {
    return this.number(field, value ? 1 : 0);
  }

  bytes(field: number, value: Uint8Array | string): this {
    const bytes = typeof value === 'string' ? Buffer.from(value, 'utf8') : value;
    return bytes.length === 0 ? this : this.message(field, bytes);
  }

  /** Writes 64 bits in little-endian order, for times and ids. */
  fixed64(field: number, value: bigint): this {
    if (value === 0n) return this;
    const bytes = Buffer.allocUnsafe(8);
    bytes.writeBigUInt64LE(BigInt.asUintN(64, value));
    this.#parts.push(varint((field << 3) | FIXED64), bytes);
    return this;
  }

  double(field: number, value: number): this {
    if (Object.is(value, 0)) return this;
    const bytes = Buffer.allocUnsafe(8);
    bytes.writeDoubleLE(value);
    this.#parts.push(varint((field << 3) | FIXED64), bytes);
    return this;
  }

  /** Writes a packed list of `sint64` numbers, which take little space when close to 0. */
  signedList(field: number, values: readonly number[]): this {
    if (values.length === 0) return this;
    return this.message(field, Buffer.concat(values.map((value) => varint(zigzag(value)))));
  }

  signed(field: number, value: number): this {
    return this.number(field, zigzag(value));
  }

  /** Writes an embedded message, even if it is empty. */
  message(field: number, bytes: Uint8Array): this {
    this.#parts.push(varint((field << 3) | BYTES), varint(bytes.length), Buffer.from(bytes));
    return this;
  }

  build(): Buffer {
    return Buffer.concat(this.#parts);
  }
}

/** Maps signed numbers to unsigned ones: 0, -1, 1, -2 … become 0, 1, 2, 3 … */
function zigzag(value: number): number {
  return value < 0 ? -2 * value - 1 : 2 * value;
}

/** Encodes seven bits per byte, lowest first. A negative number takes all 64 bits. */
export function varint(value: number | bigint): Buffer {
  const out: number[] = [];
  if (typeof value === 'bigint') {
    let rest = BigInt.asUintN(64, value);
    for (; rest >= 0x80n; rest >>= 7n) out.push(Number(rest & 0x7fn) | 0x80);
    out.push(Number(rest));
  } else {
    let rest = value;
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) out.push((rest % 0x80) | 0x80);
    out.push(rest);
  }
  return Buffer.from(out);
}

/**
 * Iterates over the fields of a message. Reusable: `over` starts a message and `next` moves to a field. Fields that are
 * not read are skipped.
 *
 * ```ts
 * for (reader.over(bytes); reader.next(); ) if (reader.field === 3) more = reader.flag();
 * ```
 */
export class MessageReader {
  field = 0;
  #bytes: Buffer = nothing;
  #at = 0;
  #end = 0;
  /** The current field's wire type, one of `WIRE`. */
  kind: number = VARINT;
  /** The current value: where its bytes start, or its numeric value as two 32-bit halves. */
  #from = 0;
  #to = 0;
  #low = 0;
  #high = 0;

  over(bytes: Buffer, start = 0, end: number = bytes.length): this {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
    return this;
  }

  /**
   * Moves to the next field.
   * @returns false after the last one
   * @throws MessageError
   */
  next(): boolean {
    if (this.#at >= this.#end) return false;
    this.#varint();
    const tag = this.#low;
    this.field = tag >>> 3;
    if (this.field === 0) throw new MessageError('there is no field 0');
    this.kind = tag & 7;
    switch (this.kind) {
      case VARINT:
        this.#varint();
        return true;
      case BYTES:
        this.#varint();
        if (this.#high !== 0) throw new MessageError('a field is longer than its message');
        this.#from = this.#at;
        this.#to = this.#at + this.#low;
        break;
      case FIXED64:
      case FIXED32:
        this.#from = this.#at;
        this.#to = this.#at + (this.kind === FIXED64 ? 8 : 4);
        break;
      default:
        throw new MessageError(`there are no fields of kind ${this.kind}`);
    }
    if (this.#to > this.#end) throw new MessageError('a field is longer than its message');
    this.#at = this.#to;
    return true;
  }

  /** Returns the current value as a number, which is exact up to 2^53. Negative 64-bit varints are negative. */
  number(): number {
    if (this.kind === FIXED32) return this.#bytes.readUInt32LE(this.#from);
    if (this.kind === FIXED64) return Number(this.#bytes.readBigUInt64LE(this.#from));
    this.#expect(VARINT);
    return (this.#high | 0) * 0x1_0000_0000 + this.#low;
  }

  /** Returns the current value as a 64-bit float. */
  double(): number {
    this.#expect(FIXED64);
    return this.#bytes.readDoubleLE(this.#from);
  }

  /** Returns the current value as an unsigned 64-bit integer. */
  id(): bigint {
    this.#expect(VARINT);
    return (BigInt(this.#high) << 32n) | BigInt(this.#low);
  }

  flag(): boolean {
    return this.number() !== 0;
  }

  /** Returns the current value as bytes; a view. */
  bytes(): Buffer {
    this.#expect(BYTES);
    return this.#bytes.subarray(this.#from, this.#to);
  }

  /** Bounds of the current value's bytes within the message. */
  get start(): number {
    this.#expect(BYTES);
    return this.#from;
  }

  get end(): number {
    return this.#to;
  }

  text(): string {
    return this.bytes().toString('utf8');
  }

  #expect(kind: number): void {
    if (this.kind !== kind) throw new MessageError(`field ${this.field} is of another kind`);
  }

  #varint(): void {
    const bytes = this.#bytes;
    let low = 0;
    let high = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      if (this.#at >= this.#end)
        throw new MessageError('the message ends in the middle of a number');
      const byte = bytes[this.#at++]!;
      const bits = byte & 0x7f;
      if (shift < 28) low |= bits << shift;
      else if (shift === 28) {
        low |= bits << 28;
        high |= bits >>> 4;
      } else if (shift < 63) high |= bits << (shift - 32);
      else high |= (bits & 1) << 31;
      if (byte < 0x80) {
        this.#low = low >>> 0;
        this.#high = high >>> 0;
        return;
      }
    }
    throw new MessageError('a number is longer than 64 bits');
  }
}

const nothing = Buffer.alloc(0);
