import { TYPE } from '../iana.ts';
import { sizedHex, u16, u8 } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** Hash parameters of a zone (RFC 5155 section 4.2). */
export const nsec3param: RecordKind<{
  algorithm: number;
  flags: number;
  iterations: number;
  salt: Uint8Array;
}> = recordKind('NSEC3PARAM', TYPE.NSEC3PARAM, {
  algorithm: u8,
  flags: u8,
  iterations: u16,
  salt: sizedHex,
});
