import { TYPE } from '../iana.ts';
import { string } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** Geographical position, as three numbers in text form (RFC 1712 section 3). Superseded by LOC. */
export const gpos: RecordKind<{
  longitude: string;
  latitude: string;
  altitude: string;
}> = recordKind('GPOS', TYPE.GPOS, { longitude: string, latitude: string, altitude: string });
