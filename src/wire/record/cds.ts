import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { keyDigest } from './shape.ts';

/** Child's copy of DS (RFC 7344 section 3.1). */
export const cds: RecordKind<{
  keyTag: number;
  algorithm: number;
  digestType: number;
  digest: Uint8Array;
}> = recordKind('CDS', TYPE.CDS, keyDigest);
