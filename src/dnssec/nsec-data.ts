/** NSEC records: what is not there (RFC 4034 section 4). */
import type { WireName } from '../wire/name.ts';
import { typeSet } from '../wire/record/type-field.ts';
import { MessageWriter } from '../wire/writer.ts';

const writer = new MessageWriter(false);

/** NSEC data: the next name in full, then the types as bitmaps (RFC 4034 section 4.1). */
export function nsecData(next: WireName, types: readonly number[]): Uint8Array {
  writer.begin(0, 0);
  writer.name(next, false);
  typeSet.write(types, writer);
  return writer.take().subarray(12);
}
