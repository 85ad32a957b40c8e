/** Record data of a message without compression. */
import { checkData, firstName, layoutOf } from '../wire/layout.ts';
import type { Reader } from '../wire/reader.ts';
import { GrowingBytes } from './growing.ts';

const plain = new GrowingBytes();

/** Reads record data as it is without compression: an own copy. @throws ReadError */
export function plainData(from: Reader, type: number, length: number): Uint8Array {
  if (length > from.left) from.fail('the data of a record runs over the end of the message');
  const { message, start, at } = from;
  const end = at + length;
  const shape = layoutOf(type);
  if (shape === undefined || length === 0) return from.bytes(length).slice();
  checkData(message, start, at, end, type);
  if (shape.names === 0) return from.bytes(length).slice();
  plain.length = 0;
  const first = firstName(message, start, at, end, shape);
  plain.push(from.bytes(first - at));
  for (let left = shape.names; left > 0; left--) plain.push(from.wireName());
  plain.push(from.bytes(end - from.at));
  return plain.bytes.slice(0, plain.length);
}
