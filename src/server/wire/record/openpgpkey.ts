import { TYPE } from '../iana.ts';
import { restBase64 } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** OpenPGP public key (RFC 7929 section 2.1). */
export const openpgpkey: RecordKind<{
  publicKey: Uint8Array;
}> = recordKind('OPENPGPKEY', TYPE.OPENPGPKEY, { publicKey: restBase64 });
