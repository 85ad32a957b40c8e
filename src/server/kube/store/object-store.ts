import { hashBytes } from '../../base/hash.ts';
import type { ObjectKind } from './objects.ts';
import {
  Encoder,
  Decoder,
  type GoneRecord,
  type ObjectRecord,
  type RecordFields,
  type StringTable,
} from './object-record.ts';

/**
 * The current state of one kind, in encoded form. Records are stored one after another in buffers, and so cost the
 * garbage collector nothing. A hash table with one word per record finds them by namespace and name. Every method that
 * changes the state reports the resulting changes, so first lists, later lists and watch events share the code. A
 * record begins with the body length and flags (4 bytes) and the hash of its key (4). The key (namespace and name), the
 * number of objects, and the objects follow. Records are padded to whole words.
 */
export class ObjectStore<R extends ObjectRecord> {
  readonly kind: ObjectKind;
  readonly #fields: RecordFields;
  readonly #strings: StringTable;
  readonly #encoder: Encoder;
  readonly #chunks: (RecordChunk | null)[] = [];
  #current = -1;
  #slots = new Uint32Array(64);
  #size = 0;
  #pins = 0;

  constructor(kind: ObjectKind, fields: RecordFields, strings: StringTable) {
    this.kind = kind;
    this.#fields = fields;
    this.#strings = strings;
    this.#encoder = new Encoder(strings);
  }

  /** Number of API objects. */
  get size(): number {
    return this.#size;
  }

  /** Bytes of buffers and table. */
  get bytes(): number {
    let total = this.#slots.byteLength;
    for (const chunk of this.#chunks) total += chunk?.bytes.length ?? 0;
    return total;
  }

  /**
   * Stores the result of transforming one API object (`objects`, usually one), and appends the actual changes to `out`.
   */
  put(namespace: string, name: string, objects: readonly R[], out: (R | GoneRecord)[]): void {
    if (objects.length === 0) return this.remove(namespace, name, out);
    const keySize = this.#encodeKey(namespace, name);
    const encoder = this.#encoder;
    const hash = this.#hashOf(encoder.bytes, keySize);
    encoder.number(objects.length);
    for (const object of objects) encoder.record(object, this.#fields, name);
    const slot = this.#find(hash, encoder.bytes, keySize);
    const address = this.#slots[slot]!;
    if (address === 0) {
      out.push(...objects);
      this.#slots[slot] = this.#append(hash, encoder.bytes, encoder.length);
      this.#size++;
      if (4 * this.#size > 3 * this.#slots.length) this.#grow();
      return;
    }
    const chunk = this.#chunkAt(address);
    const at = unitOf(address) * WORD_BYTES;
    const length = chunk.words[at / WORD_BYTES]! & LENGTH_MASK;
    const start = at + HEADER_BYTES;
    if (
      length === encoder.length &&
      encoder.bytes.compare(chunk.bytes, start, start + length, 0, length) === 0
    ) {
      chunk.words[at / WORD_BYTES]! |= MARK_FLAG;
      return;
    }
    this.#compare(this.#objectsAt(address), objects, out);
    if (unitsFor(length) === unitsFor(encoder.length)) {
      chunk.words[at / WORD_BYTES] = encoder.length | MARK_FLAG;
      encoder.bytes.copy(chunk.bytes, start, 0, encoder.length);
      return;
    }
    this.#slots[slot] = this.#append(hash, encoder.bytes, encoder.length);
    // Do this only now, because burying the old record may move others, which it looks up in the table.
    this.#bury(address);
  }

  remove(namespace: string, name: string, out: (R | GoneRecord)[]): void {
    const keySize = this.#encodeKey(namespace, name);
    const hash = this.#hashOf(this.#encoder.bytes, keySize);
    const slot = this.#find(hash, this.#encoder.bytes, keySize);
    if (this.#slots[slot] !== 0) this.#drop(slot, out);
  }

  /** Marks an object as still existing and unchanged. Returns false if the object is unknown. */
  mark(namespace: string, name: string): boolean {
    const keySize = this.#encodeKey(namespace, name);
    const slot = this.#find(
      this.#hashOf(this.#encoder.bytes, keySize),
      this.#encoder.bytes,
      keySize,
    );
    const address = this.#slots[slot]!;
    if (address === 0) return false;
    this.#chunkAt(address).words[unitOf(address)]! |= MARK_FLAG;
    return true;
  }

  /** Starts a complete list. `endList` removes objects that have not been put again by then. */
  beginList(): void {
    for (const address of this.#addresses()) {
      this.#chunkAt(address).words[unitOf(address)]! &= ~MARK_FLAG;
    }
  }

  /** Ends a complete list, removing the objects that it did not contain. */
  endList(out: (R | GoneRecord)[]): void {
    this.#pins++;
    for (const address of this.#addresses()) {
      const word = this.#chunkAt(address).words[unitOf(address)]!;
      if ((word & MARK_FLAG) === 0) this.#drop(this.#slotOf(address), out);
    }
    this.unpin();
  }

  /**
   * Yields all objects in arbitrary order, each in its current state. The iteration may extend over many event loop
   * turns while objects change. Objects that exist throughout are returned at least once.
   */
  *objects(): Generator<R> {
    this.pin();
    try {
      for (const address of this.#addresses()) yield* this.#living(address);
    } finally {
      this.unpin();
    }
  }

  /** Yields a record's objects as long as the record exists. */
  *#living(address: number): Generator<R> {
    const [first, ...others] = this.#objectsAt(address);
    if (first !== undefined) yield first;
    // If there are several, look up each one again, because it may have changed.
    for (let index = 1; index <= others.length && !this.#isDead(address); index++) {
      const object = this.#objectsAt(address)[index];
      if (object !== undefined) yield object;
    }
  }

  #isDead(address: number): boolean {
    return (this.#chunkAt(address).words[unitOf(address)]! & DEAD_FLAG) !== 0;
  }

  /** Keeps records in place, so that a slow reader of `objects` does not miss any. */
  pin(): void {
    this.#pins++;
  }

  unpin(): void {
    this.#pins--;
    if (this.#pins > 0) return;
    for (const [index, chunk] of this.#chunks.entries()) {
      if (chunk !== null) this.#tidy(index, chunk);
    }
  }

  #encodeKey(namespace: string, name: string): number {
    this.#encoder.begin();
    this.#encoder.shared(namespace);
    this.#encoder.text(name);
    return this.#encoder.length;
  }

  #hashOf(bytes: Buffer, length: number): number {
    return hashBytes(bytes, 0, length) >>> 0;
  }

  #compare(before: readonly R[], after: readonly R[], out: (R | GoneRecord)[]): void {
    for (const old of before) {
      if (!after.some((object) => object.name === old.name)) out.push(gone(old));
    }
    for (const object of after) {
      const old = before.find((candidate) => candidate.name === object.name);
      if (old === undefined || before.length + after.length === 2 || !this.#same(old, object)) {
        out.push(object);
      }
    }
  }

  #same(one: R, other: R): boolean {
    const encode = (object: R): Buffer => {
      const encoder = new Encoder(this.#strings);
      encoder.record(object, this.#fields, '');
      return encoder.bytes.subarray(0, encoder.length);
    };
    return encode(one).equals(encode(other));
  }

  /** Returns the slot of the key in `bytes`, or the empty slot where the key belongs. */
  #find(hash: number, bytes: Buffer, keySize: number): number {
    const mask = this.#slots.length - 1;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const address = this.#slots[slot]!;
      if (address === 0) return slot;
      const chunk = this.#chunkAt(address);
      const word = unitOf(address);
      if (chunk.words[word + 1] !== hash) continue;
      const start = word * WORD_BYTES + HEADER_BYTES;
      // Keys include their own length (each text does), so an equal prefix means an equal key.
      if (bytes.compare(chunk.bytes, start, start + keySize, 0, keySize) === 0) return slot;
    }
  }

  #slotOf(address: number): number {
    const mask = this.#slots.length - 1;
    let slot = this.#chunkAt(address).words[unitOf(address) + 1]! & mask;
    while (this.#slots[slot] !== address) slot = (slot + 1) & mask;
    return slot;
  }

  #drop(slot: number, out: (R | GoneRecord)[]): void {
    const address = this.#slots[slot]!;
    for (const object of this.#objectsAt(address)) out.push(gone(object));
    this.#size--;
    // This is linear probing without tombstones, so later entries that hashed to this slot move up.
    const mask = this.#slots.length - 1;
    let hole = slot;
    for (let next = (slot + 1) & mask; this.#slots[next] !== 0; next = (next + 1) & mask) {
      const mover = this.#slots[next]!;
      const home = this.#chunkAt(mover).words[unitOf(mover) + 1]! & mask;
      if (((next - home) & mask) < ((next - hole) & mask)) continue;
      this.#slots[hole] = mover;
      hole = next;
    }
    this.#slots[hole] = 0;
    this.#bury(address);
  }

  #grow(): void {
    const before = this.#slots;
    this.#slots = new Uint32Array(2 * before.length);
    const mask = this.#slots.length - 1;
    for (const address of before) {
      if (address === 0) continue;
      let slot = this.#chunkAt(address).words[unitOf(address) + 1]! & mask;
      while (this.#slots[slot] !== 0) slot = (slot + 1) & mask;
      this.#slots[slot] = address;
    }
  }

  #append(hash: number, bytes: Buffer, length: number): number {
    const units = unitsFor(length);
    let chunk = this.#current < 0 ? null : this.#chunks[this.#current]!;
    if (chunk === null || (chunk.used + units) * WORD_BYTES > chunk.bytes.length) {
      chunk = newChunk(Math.max(CHUNK_BYTES, units * WORD_BYTES));
      const free = this.#chunks.indexOf(null);
      this.#current = free < 0 ? this.#chunks.length : free;
      this.#chunks[this.#current] = chunk;
    }
    const word = chunk.used;
    chunk.used += units;
    chunk.words[word] = length | MARK_FLAG;
    chunk.words[word + 1] = hash;
    bytes.copy(chunk.bytes, word * WORD_BYTES + HEADER_BYTES, 0, length);
    return this.#current * CHUNK_UNITS + word + 1;
  }

  #bury(address: number): void {
    const index = Math.floor((address - 1) / CHUNK_UNITS);
    const chunk = this.#chunks[index]!;
    const word = unitOf(address);
    const units = unitsFor(chunk.words[word]! & LENGTH_MASK);
    chunk.words[word]! |= DEAD_FLAG;
    chunk.dead += units;
    if (this.#pins === 0) this.#tidy(index, chunk);
  }

  /** If a third of a chunk is dead, moves its live records to the current chunk and frees it. */
  #tidy(index: number, chunk: RecordChunk): void {
    if (3 * chunk.dead <= chunk.used || index === this.#current) return;
    for (const word of livingWords(chunk)) {
      const slot = this.#slotOf(index * CHUNK_UNITS + word + 1);
      const head = chunk.words[word]!;
      const start = word * WORD_BYTES + HEADER_BYTES;
      const body = chunk.bytes.subarray(start, start + (head & LENGTH_MASK));
      const address = this.#append(chunk.words[word + 1]!, body, body.length);
      if ((head & MARK_FLAG) === 0) this.#chunkAt(address).words[unitOf(address)]! &= ~MARK_FLAG;
      this.#slots[slot] = address;
    }
    this.#chunks[index] = null;
  }

  *#addresses(): Generator<number> {
    // Iterate by index, because chunks added during the loop must be visited as well.
    for (let index = 0; index < this.#chunks.length; index++) {
      const chunk = this.#chunks[index];
      if (!chunk) continue;
      for (const word of livingWords(chunk)) yield index * CHUNK_UNITS + word + 1;
    }
  }

  #objectsAt(address: number): R[] {
    const chunk = this.#chunkAt(address);
    const decoder = new Decoder(
      chunk.bytes,
      unitOf(address) * WORD_BYTES + HEADER_BYTES,
      this.#strings,
    );
    const namespace = decoder.text();
    const name = decoder.text();
    const objects: R[] = [];
    for (let rest = decoder.number(); rest > 0; rest--) {
      objects.push(decoder.record(this.kind, namespace, name, this.#fields) as R);
    }
    return objects;
  }

  #chunkAt(address: number): RecordChunk {
    return this.#chunks[Math.floor((address - 1) / CHUNK_UNITS)]!;
  }
}

/**
 * A block of memory for records. A record's address is its offset in words across all chunks, plus one, because 0 is an
 * empty slot.
 */
interface RecordChunk {
  readonly bytes: Buffer;
  readonly words: Uint32Array;
  /** Words in use, from the front. */
  used: number;
  /** Words of removed records. */
  dead: number;
}

const WORD_BYTES = 4;
const HEADER_BYTES = 8;
const CHUNK_UNITS = 65_536;
const CHUNK_BYTES = CHUNK_UNITS * WORD_BYTES;
const DEAD_FLAG = 0x8000_0000;
const MARK_FLAG = 0x4000_0000;
const LENGTH_MASK = 0x3fff_ffff;

/** Creates a chunk of `size` bytes, rounded up to whole words. A chunk larger than usual holds a single record. */
function newChunk(size: number): RecordChunk {
  const memory = new ArrayBuffer(size);
  return { bytes: Buffer.from(memory), words: new Uint32Array(memory), used: 0, dead: 0 };
}

function* livingWords(chunk: RecordChunk): Generator<number> {
  for (let word = 0; word < chunk.used;) {
    const head = chunk.words[word]!;
    if ((head & DEAD_FLAG) === 0) yield word;
    word += unitsFor(chunk.words[word]! & LENGTH_MASK);
  }
}

function unitsFor(length: number): number {
  return (HEADER_BYTES + length + WORD_BYTES - 1) >>> 2;
}

function unitOf(address: number): number {
  return (address - 1) % CHUNK_UNITS;
}

function gone({ kind, namespace, name }: ObjectRecord): GoneRecord {
  return { kind: 'Gone', of: kind, namespace, name };
}
