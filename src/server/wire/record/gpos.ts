import { TYPE } from '../iana.ts';
import { string } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** Place on Earth, as three numbers in text (RFC 1712 section 3); LOC took over. */
export const gpos: RecordKind<{
  longitude: string;
  latitude: string;
  altitude: string;
}> = recordKind('GPOS', TYPE.GPOS, { longitude: string, latitude: string, altitude: string });
