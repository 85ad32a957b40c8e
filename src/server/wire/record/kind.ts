import type { Reader } from '../reader.ts';
import type { Words } from '../record-words.ts';
import type { MessageWriter } from '../writer.ts';

/**
 * One record type: its data between wire form, an object, and zone file text.
 *
 * The objects are for tools, tests and plugins that look at single records; replies on the hot path
 * never pass through them. So they are readable: names are absolute text with escapes
 * (`www.example.org.`), and addresses are text. Character strings are the text between the quotes
 * of a zone file, and other bytes are Uint8Arrays.
 */
export interface RecordKind<D extends object> {
  /** As in zone files: `MX`. */
  readonly name: string;
  readonly type: number;
  /** Reads the data up to the reader's end. @throws ReadError */
  read(from: Reader): D;
  write(data: D, to: MessageWriter): void;
  /** @param split cuts long hex and base64 fields into words of this many characters; 0: never */
  print(data: D, split?: number): string;
  /** @throws TextError */
  parse(from: Words): D;
}

/** One part of a record's data. */
export interface Field<T> {
  read(from: Reader): T;
  write(value: T, to: MessageWriter): void;
  /** Words, separated by spaces; may be empty. */
  print(value: T, split: number): string;
  /** @param what the field's name, for error messages */
  parse(from: Words, what: string): T;
}

/** The fields of some data, in the order of the wire. */
export type Shape<D extends object> = { readonly [K in keyof D]: Field<D[K]> };

/** A record type whose data is its fields one after the other. */
export function recordKind<D extends object>(
  name: string,
  type: number,
  fields: Shape<D>,
): RecordKind<D> {
  const entries = Object.entries(fields) as [string, Field<unknown>][];
  return {
    name,
    type,
    read: (from) => Object.fromEntries(entries.map(([key, field]) => [key, field.read(from)])) as D,
    write(data, to) {
      for (const [key, field] of entries) field.write(data[key as keyof D], to);
    },
    print(data, split = 0) {
      const words = entries.map(([key, field]) => field.print(data[key as keyof D], split));
      return words.filter((word) => word !== '').join(' ');
    },
    parse: (from) =>
      Object.fromEntries(
        entries.map(([key, field]) => [key, field.parse(from, `${name} ${key}`)]),
      ) as D,
  };
}

/**
 * Record data as plain bytes: for types without a codec, and for data that is empty although its
 * type's form is not (RFC 2136).
 */
export class Opaque {
  readonly bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }
}
