import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { signature } from './shape.ts';

/** Signature over a record set (RFC 4034 section 3.1). */
export const rrsig: RecordKind<{
  typeCovered: number;
  algorithm: number;
  labels: number;
  originalTtl: number;
  expiration: number;
  inception: number;
  keyTag: number;
  signer: string;
  signature: Uint8Array;
}> = recordKind('RRSIG', TYPE.RRSIG, signature);
