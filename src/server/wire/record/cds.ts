import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { keyDigest, type KeyDigest } from './shape.ts';

/** Child's copy of DS (RFC 7344 section 3.1). */
export const cds: RecordKind<KeyDigest> = recordKind('CDS', TYPE.CDS, keyDigest);
