/** Expands record data from a message to uncompressed form. */
import { NAME_MAX } from '../wire/name.ts';
import { checkData, firstName, layoutOf } from '../wire/layout.ts';
import type { Reader } from '../wire/reader.ts';
import type { GrowingBytes } from './growing.ts';

const name = new Uint8Array(NAME_MAX);

/**
 * Reads record data and writes it to `to` without compression, replacing the previous content.
 * @throws ReadError
 */
export function readPlainData(from: Reader, type: number, length: number, to: GrowingBytes): void {
  if (length > from.left) from.fail('the data of a record runs past the end of the message');
  const { message, start, at } = from;
  const end = at + length;
  to.length = 0;
  checkData(message, start, at, end, type);
  const shape = layoutOf(type);
  if (shape !== undefined && length === 0) from.fail('the data of a record is empty');
  if (shape !== undefined && shape.names > 0) {
    from.at = firstName(message, start, at, end, shape);
    to.copy(message, at, from.at - at);
    for (let left = shape.names; left > 0; left--) to.copy(name, 0, from.wireNameInto(name));
  }
  to.copy(message, from.at, end - from.at);
  from.at = end;
}
