import { TYPE } from '../iana.ts';
import { restHex } from './field.ts';
import { Opaque, type RecordKind } from './kind.ts';

/** Arbitrary data (RFC 1035 section 3.3.10), for which there is only the generic text form. */
export const nullKind: RecordKind<Opaque> = {
  name: 'NULL',
  type: TYPE.NULL,
  read: (from) => new Opaque(from.rest()),
  write: (data, to) => to.bytes(data.bytes),
  print: (data, split = 0) => printOpaque(data, split),
  parse: (from) => from.fail('NULL has only the generic form: \\# LENGTH HEX', 0),
};

/** `\# 4 0A000001` (RFC 3597 section 5). */
export function printOpaque(data: Opaque, split = 0): string {
  return `\\# ${data.bytes.length} ${restHex.print(data.bytes, split)}`.trimEnd();
}
