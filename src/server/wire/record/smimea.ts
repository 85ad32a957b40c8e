import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { certificate, type Certificate } from './shape.ts';

/** Certificate for an email address (RFC 8162 section 2). */
export const smimea: RecordKind<Certificate> = recordKind('SMIMEA', TYPE.SMIMEA, certificate);
