import { TYPE } from '../iana.ts';
import { recordKind } from './kind.ts';
import { signature } from './shape.ts';

/** Signature over a record set (RFC 4034 section 3.1). */
export const rrsig = recordKind('RRSIG', TYPE.RRSIG, signature);
