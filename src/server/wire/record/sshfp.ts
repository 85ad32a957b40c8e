import { TYPE } from '../iana.ts';
import { restHex, u8 } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** Fingerprint of an SSH host key (RFC 4255 section 3.1). */
export const sshfp: RecordKind<{
  algorithm: number;
  fingerprintType: number;
  fingerprint: Uint8Array;
}> = recordKind('SSHFP', TYPE.SSHFP, {
  algorithm: u8,
  fingerprintType: u8,
  fingerprint: restHex,
});
