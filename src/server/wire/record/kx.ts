import { TYPE } from '../iana.ts';
import { fullName, u16 } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** Key exchanger (RFC 2230). */
export const kx: RecordKind<{
  preference: number;
  exchange: string;
}> = recordKind('KX', TYPE.KX, { preference: u16, exchange: fullName });
