import { TYPE } from '../iana.ts';
import { recordKind } from './kind.ts';
import { signature } from './shape.ts';

/** Signature (RFC 2535 section 4.1); today for SIG(0) only. */
export const sig = recordKind('SIG', TYPE.SIG, signature);
