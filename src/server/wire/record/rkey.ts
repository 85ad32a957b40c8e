import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { publicKey, type PublicKey } from './shape.ts';

/** Key for encrypting records (draft-reid-dnsext-rkey). */
export const rkey: RecordKind<PublicKey> = recordKind('RKEY', TYPE.RKEY, publicKey);
