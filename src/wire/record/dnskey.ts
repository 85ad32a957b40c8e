import { TYPE } from '../iana.ts';
import { recordKind } from './kind.ts';
import { publicKey } from './shape.ts';

/** Public key of a zone (RFC 4034 section 2.1). */
export const dnskey = recordKind('DNSKEY', TYPE.DNSKEY, publicKey);
