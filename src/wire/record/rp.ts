import { TYPE } from '../iana.ts';
import { fullName } from './field.ts';
import { recordKind } from './kind.ts';

/** Responsible person (RFC 1183 section 2.2). */
export const rp = recordKind('RP', TYPE.RP, { mailbox: fullName, text: fullName });
