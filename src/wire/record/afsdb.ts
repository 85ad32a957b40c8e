import { TYPE } from '../iana.ts';
import { fullName, u16 } from './field.ts';
import { recordKind } from './kind.ts';

/** AFS cell database (RFC 1183 section 1). */
export const afsdb = recordKind('AFSDB', TYPE.AFSDB, { subtype: u16, target: fullName });
