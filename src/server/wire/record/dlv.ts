import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { keyDigest, type KeyDigest } from './shape.ts';

/** Trust anchor outside the parent zone (RFC 4431); obsolete. */
export const dlv: RecordKind<KeyDigest> = recordKind('DLV', TYPE.DLV, keyDigest);
