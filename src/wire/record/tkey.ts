import { TYPE } from '../iana.ts';
import { fullName, time, u16 } from './field.ts';
import { recordKind } from './kind.ts';
import { errorCode, lengthAndBase64 } from './tsig.ts';

/** Agreement on a key (RFC 2930 section 2). */
export const tkey = recordKind('TKEY', TYPE.TKEY, {
  algorithm: fullName,
  inception: time,
  expiration: time,
  mode: u16,
  error: errorCode,
  key: lengthAndBase64,
  other: lengthAndBase64,
});
