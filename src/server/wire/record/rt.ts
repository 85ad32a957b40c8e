import { TYPE } from '../iana.ts';
import { fullName, u16 } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** Route through (RFC 1183 section 3.3); obsolete. */
export const rt: RecordKind<{
  preference: number;
  host: string;
}> = recordKind('RT', TYPE.RT, { preference: u16, host: fullName });
