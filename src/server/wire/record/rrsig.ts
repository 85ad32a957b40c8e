import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { signature, type Signature } from './shape.ts';

/** Signature over a record set (RFC 4034 section 3.1). */
export const rrsig: RecordKind<Signature> = recordKind('RRSIG', TYPE.RRSIG, signature);
