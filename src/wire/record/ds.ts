import { TYPE } from '../iana.ts';
import { recordKind } from './kind.ts';
import { keyDigest } from './shape.ts';

/** Delegation signer (RFC 4034 section 5.1). */
export const ds = recordKind('DS', TYPE.DS, keyDigest);
