import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { keyDigest } from './shape.ts';

/** Delegation signer (RFC 4034 section 5.1). */
export const ds: RecordKind<{
  keyTag: number;
  algorithm: number;
  digestType: number;
  digest: Uint8Array;
}> = recordKind('DS', TYPE.DS, keyDigest);
