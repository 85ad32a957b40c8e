import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { keyDigest, type KeyDigest } from './shape.ts';

/** Delegation signer (RFC 4034 section 5.1). */
export const ds: RecordKind<KeyDigest> = recordKind('DS', TYPE.DS, keyDigest);
