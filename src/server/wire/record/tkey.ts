import { TYPE } from '../iana.ts';
import { fullName, time, u16 } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { errorCode, lengthAndBase64 } from './tsig.ts';

/** Key agreement (RFC 2930 section 2). */
export const tkey: RecordKind<{
  algorithm: string;
  inception: number;
  expiration: number;
  mode: number;
  error: number;
  key: Uint8Array;
  other: Uint8Array;
}> = recordKind('TKEY', TYPE.TKEY, {
  algorithm: fullName,
  inception: time,
  expiration: time,
  mode: u16,
  error: errorCode,
  key: lengthAndBase64,
  other: lengthAndBase64,
});
