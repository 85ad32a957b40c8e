import type { Reader } from '../reader.ts';
import type { Words } from '../record-words.ts';
import type { MessageWriter } from '../writer.ts';

/**
 * One record type, which converts its data between wire form, an object, and zone file text. The objects are for tools,
 * tests and plugins that examine individual records. Replies on the hot path never pass through them, so they favour
 * readability. Names are absolute text with escapes (`www.example.org.`). Addresses are text, and character strings are
 * the text between the quotes in a zone file. Other bytes are Uint8Arrays.
 */
export interface RecordKind<D extends object> {
  /** As in zone files: `MX`. */
  readonly name: string;
  readonly type: number;
  /**
   * Reads the data up to the reader's end.
   * @throws ReadError
   */
  read(from: Reader): D;
  write(data: D, to: MessageWriter): void;
  /** @param split splits long hex and base64 fields into words with this number of characters; 0 never splits */
  print(data: D, split?: number): string;
  /** @throws TextError */
  parse(from: Words): D;
}

export interface Field<T> {
  read(from: Reader): T;
  write(value: T, to: MessageWriter): void;
  /** Prints words separated by spaces. May return an empty string. */
  print(value: T, split: number): string;
  /** @param what the field's name, for error messages */
  parse(from: Words, what: string): T;
}

/** The fields of a record's data, in wire order. */
export type Shape<D extends object> = { readonly [K in keyof D]: Field<D[K]> };

/** Creates a record type whose data is a sequence of fields. */
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
 * Record data as plain bytes, for types without a codec, and for empty data in types that do not normally allow it (RFC
 * 2136).
 */
export class Opaque {
  readonly bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }
}
