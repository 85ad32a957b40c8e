import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { publicKey, type PublicKey } from './shape.ts';

/** Child's copy of DNSKEY (RFC 7344 section 3.2). */
export const cdnskey: RecordKind<PublicKey> = recordKind('CDNSKEY', TYPE.CDNSKEY, publicKey);
