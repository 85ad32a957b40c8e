import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { publicKey, type PublicKey } from './shape.ts';

/** Public key (RFC 2535 section 3.1), now used only for SIG(0). */
export const key: RecordKind<PublicKey> = recordKind('KEY', TYPE.KEY, publicKey);
