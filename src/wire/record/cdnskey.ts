import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { publicKey } from './shape.ts';

/** Child's copy of DNSKEY (RFC 7344 section 3.2). */
export const cdnskey: RecordKind<{
  flags: number;
  protocol: number;
  algorithm: number;
  publicKey: Uint8Array;
}> = recordKind('CDNSKEY', TYPE.CDNSKEY, publicKey);
