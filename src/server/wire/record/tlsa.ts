import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { certificate, type Certificate } from './shape.ts';

/** Certificate association for a TLS service (RFC 6698 section 2.1). */
export const tlsa: RecordKind<Certificate> = recordKind('TLSA', TYPE.TLSA, certificate);
