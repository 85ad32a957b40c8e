import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { publicKey, type PublicKey } from './shape.ts';

/** A zone's public key (RFC 4034 section 2.1). */
export const dnskey: RecordKind<PublicKey> = recordKind('DNSKEY', TYPE.DNSKEY, publicKey);
