import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { signature } from './shape.ts';

/** Signature (RFC 2535 section 4.1); today for SIG(0) only. */
export const sig: RecordKind<{
  typeCovered: number;
  algorithm: number;
  labels: number;
  originalTtl: number;
  expiration: number;
  inception: number;
  keyTag: number;
  signer: string;
  signature: Uint8Array;
}> = recordKind('SIG', TYPE.SIG, signature);
