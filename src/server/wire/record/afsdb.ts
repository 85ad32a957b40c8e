import { TYPE } from '../iana.ts';
import { fullName, u16 } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** AFS cell database (RFC 1183 section 1). */
export const afsdb: RecordKind<{
  subtype: number;
  target: string;
}> = recordKind('AFSDB', TYPE.AFSDB, { subtype: u16, target: fullName });
