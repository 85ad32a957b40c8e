/** NSEC records, which prove that a name or type does not exist (RFC 4034 section 4). */
import { copyBytes } from '../base/copy-bytes.ts';
import type { WireName } from '../wire/name.ts';
import { typeSet } from '../wire/record/type-field.ts';
import { MessageWriter } from '../wire/writer.ts';

const writer = new MessageWriter(false);

/**
 * Encodes NSEC data, which is the next name, uncompressed, followed by the type bitmap (RFC 4034 section 4.1).
 * @param types the result of `typeBitmaps`
 */
export function nsecData(next: WireName, types: Uint8Array): Uint8Array {
  const data = new Uint8Array(next.length + types.length);
  copyBytes(next, 0, data, 0, next.length);
  copyBytes(types, 0, data, next.length, types.length);
  return data;
}

/** Encodes a set of types in wire form (RFC 4034 section 4.1.2). */
export function typeBitmaps(types: readonly number[]): Uint8Array {
  writer.begin(0, 0);
  typeSet.write(types, writer);
  return writer.take().slice(12);
}
