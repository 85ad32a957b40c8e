/** ISDN: an address in the telephone network (RFC 1183 section 3.2). */
import { TYPE } from '../iana.ts';
import { optionalString, string } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** A telephone number, optionally with a subaddress (RFC 1183 section 3.2). */
export const isdn: RecordKind<{
  address: string;
  subaddress: string | null;
}> = recordKind('ISDN', TYPE.ISDN, { address: string, subaddress: optionalString });
