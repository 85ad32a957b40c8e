import { TYPE } from '../iana.ts';
import { recordKind } from './kind.ts';
import { publicKey } from './shape.ts';

/** Child's copy of DNSKEY (RFC 7344 section 3.2). */
export const cdnskey = recordKind('CDNSKEY', TYPE.CDNSKEY, publicKey);
