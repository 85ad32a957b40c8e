import { TYPE } from '../iana.ts';
import { string } from './field.ts';
import { recordKind, type Field, type RecordKind } from './kind.ts';

const optional: Field<string | null> = {
  read: (from) => (from.left === 0 ? null : string.read(from)),
  write(value, to) {
    if (value !== null) string.write(value, to);
  },
  print: (value, split) => (value === null ? '' : string.print(value, split)),
  parse: (from, what) => (from.left === 0 ? null : string.parse(from, what)),
};

/** Number in a telephone network, and perhaps a subaddress (RFC 1183 section 3.2). */
export const isdn: RecordKind<{
  address: string;
  subaddress: string | null;
}> = recordKind('ISDN', TYPE.ISDN, { address: string, subaddress: optional });
