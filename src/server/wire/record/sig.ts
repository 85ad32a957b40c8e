import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { signature, type Signature } from './shape.ts';

/** Signature (RFC 2535 section 4.1); now used only for SIG(0). */
export const sig: RecordKind<Signature> = recordKind('SIG', TYPE.SIG, signature);
