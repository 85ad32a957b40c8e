import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { keyDigest, type KeyDigest } from './shape.ts';

/** Trust authority (Weiler's "Deploying DNSSEC without a signed root"), in the format of DS. */
export const ta: RecordKind<KeyDigest> = recordKind('TA', TYPE.TA, keyDigest);
