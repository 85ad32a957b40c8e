import { TYPE } from '../iana.ts';
import { recordKind } from './kind.ts';
import { certificate } from './shape.ts';

/** Certificate of a TLS service (RFC 6698 section 2.1). */
export const tlsa = recordKind('TLSA', TYPE.TLSA, certificate);
