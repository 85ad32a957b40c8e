import { TYPE } from '../iana.ts';
import { recordKind } from './kind.ts';
import { certificate } from './shape.ts';

/** Certificate of a mail address (RFC 8162 section 2). */
export const smimea = recordKind('SMIMEA', TYPE.SMIMEA, certificate);
