import { TYPE } from '../iana.ts';
import { sizedBase32, sizedHex, u16, u8 } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { typeSet } from './type-field.ts';

/** Hashed proof of non-existence (RFC 5155, section 3.2). */
export const nsec3: RecordKind<{
  algorithm: number;
  flags: number;
  iterations: number;
  salt: Uint8Array;
  next: Uint8Array;
  types: readonly number[];
}> = recordKind('NSEC3', TYPE.NSEC3, {
  algorithm: u8,
  flags: u8,
  iterations: u16,
  salt: sizedHex,
  next: sizedBase32,
  types: typeSet,
});
