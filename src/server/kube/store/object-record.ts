/**
 * Objects reduced to the data that their consumer needs, and their encoding in a few dozen bytes. Sources store and
 * deliver these records, so that nothing else has to be compared, stored or sent. The same record always has the same
 * encoding while the string table exists.
 */
import type { KubeObject, ObjectKind } from './objects.ts';

/** An object reduced by its consumer. The other fields are those of its kind (`RecordFields`). */
export interface ObjectRecord {
  readonly kind: ObjectKind;
  /** `''` for a Namespace or a Node. */
  readonly namespace: string;
  readonly name: string;
  /**
   * Time of the change that led to this state, in milliseconds since 1970. It is not part of the state, so records that
   * were read from a store do not have it.
   */
  readonly triggeredAt?: number;
}

/** An object was removed. */
export interface GoneRecord {
  readonly kind: 'Gone';
  readonly of: ObjectKind;
  readonly namespace: string;
  readonly name: string;
}

/**
 * The form in which a field is stored. `shared` texts are the same in many objects, and are stored only once. In `bytes`, each
 * character is a byte. `pairs` is an object with texts.
 */
type FieldForm = 'text' | 'shared' | 'bytes' | 'number' | 'pairs';

/** A kind's fields in the order in which they are stored. */
export type RecordFields<Fields extends string = string> = Readonly<Record<Fields, FieldForm>>;

/** A consumer's choice of the data that it needs. */
export interface Reduction<R extends ObjectRecord> {
  /** Identifies the reduction, because a file with its records is of no use to another one. */
  readonly key: string;
  readonly fields: Readonly<Record<ObjectKind, RecordFields>>;
  of(object: KubeObject): R;
}

/** Longer strings are not Kubernetes names, so they are not shared. */
const NAME_MAX = 256;

/** Strings shared by many objects (nodes, namespaces, port lists), each stored only once. */
export class StringTable {
  /** Maximum number of different words. Any others are written inline. */
  static readonly limit = 65_536;
  readonly #ids = new Map<string, number>();
  readonly #words: string[] = [];

  /**
   * Returns the word's number. Returns -1 if the table is full and does not contain it, or if it is longer than a name
   * can be.
   */
  id(word: string): number {
    const known = this.#ids.get(word);
    if (known !== undefined) return known;
    if (this.#words.length >= StringTable.limit || word.length > NAME_MAX) return -1;
    const id = this.#words.length;
    this.#ids.set(word, id);
    this.#words.push(word);
    return id;
  }

  word(id: number): string {
    return this.#words[id]!;
  }
}

/** Appends values to one reusable buffer. */
export class Encoder {
  bytes: Buffer<ArrayBuffer> = Buffer.allocUnsafeSlow(4096);
  length = 0;
  readonly #strings: StringTable;

  constructor(strings: StringTable) {
    this.#strings = strings;
  }

  begin(): void {
    this.length = 0;
  }

  /** Writes an integer from 0 to 2^31 - 1, using seven bits per byte. */
  number(value: number): void {
    this.#reserve(5);
    let rest = value;
    while (rest > 0x7f) {
      this.bytes[this.length++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.bytes[this.length++] = rest;
  }

  /** Writes a string inline: an even header followed by UTF-8. */
  text(value: string): void {
    const size = Buffer.byteLength(value);
    this.number(size << 1);
    this.#reserve(size);
    this.length += this.bytes.write(value, this.length, size, 'utf8');
  }

  /** Writes a string shared by many objects, as an odd header that contains its number in the table. */
  shared(value: string): void {
    const id = value === '' ? -1 : this.#strings.id(value);
    if (id < 0) this.text(value);
    else this.number((id << 1) | 1);
  }

  /** Writes a string in which each character is a byte. */
  latin(value: string): void {
    this.number(value.length);
    this.#reserve(value.length);
    this.length += this.bytes.write(value, this.length, value.length, 'latin1');
  }

  /**
   * Writes everything except kind and namespace. `key` is the name under which the record is stored, usually its own
   * name.
   */
  record(record: ObjectRecord, fields: RecordFields, key: string): void {
    this.text(record.name === key ? '' : record.name);
    for (const field in fields) {
      const value: unknown = record[field as keyof ObjectRecord];
      switch (fields[field]) {
        case 'text':
          this.text(value as string);
          break;
        case 'shared':
          this.shared(value as string);
          break;
        case 'bytes':
          this.latin(value as string);
          break;
        case 'number':
          this.number(value as number);
          break;
        case 'pairs': {
          const words = Object.entries(value as Readonly<Record<string, string>>).flat();
          this.number(words.length);
          for (const word of words) this.shared(word);
        }
      }
    }
  }

  #reserve(size: number): void {
    if (this.length + size <= this.bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(2 * this.bytes.length, this.length + size));
    this.bytes.copy(larger, 0, 0, this.length);
    this.bytes = larger;
  }
}

/** Reads what an `Encoder` has written, starting at `at`. */
export class Decoder {
  readonly #bytes: Buffer;
  readonly #strings: StringTable;
  #at: number;

  constructor(bytes: Buffer, at: number, strings: StringTable) {
    this.#bytes = bytes;
    this.#at = at;
    this.#strings = strings;
  }

  number(): number {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.#bytes[this.#at++]!;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
  }

  /** Reads the output of `text` or `shared`. */
  text(): string {
    const header = this.number();
    if ((header & 1) === 1) return this.#strings.word(header >>> 1);
    const size = header >>> 1;
    this.#at += size;
    return size === 0 ? '' : this.#bytes.toString('utf8', this.#at - size, this.#at);
  }

  #latin(): string {
    const size = this.number();
    this.#at += size;
    return this.#bytes.toString('latin1', this.#at - size, this.#at);
  }

  /** Reads a record of this kind and namespace. */
  record(kind: ObjectKind, namespace: string, key: string, fields: RecordFields): ObjectRecord {
    const name = this.text() || key;
    const record: Record<string, unknown> = { kind, namespace, name };
    for (const field in fields) record[field] = this.#field(fields[field]!);
    return record as unknown as ObjectRecord;
  }

  #field(form: FieldForm): unknown {
    switch (form) {
      case 'text':
      case 'shared':
        return this.text();
      case 'bytes':
        return this.#latin();
      case 'number':
        return this.number();
      case 'pairs': {
        const pairs: Record<string, string> = {};
        for (let rest = this.number(); rest > 0; rest -= 2) {
          const key = this.text();
          pairs[key] = this.text();
        }
        return pairs;
      }
    }
  }
}
