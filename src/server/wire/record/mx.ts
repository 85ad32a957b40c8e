import { TYPE } from '../iana.ts';
import { name, u16 } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** Mail exchange (RFC 1035 section 3.3.9). */
export const mx: RecordKind<{
  preference: number;
  exchange: string;
}> = recordKind('MX', TYPE.MX, { preference: u16, exchange: name });
