import { TYPE } from '../iana.ts';
import { restBase64 } from './field.ts';
import { recordKind } from './kind.ts';

/** OpenPGP public key (RFC 7929 section 2.1). */
export const openpgpkey = recordKind('OPENPGPKEY', TYPE.OPENPGPKEY, { publicKey: restBase64 });
