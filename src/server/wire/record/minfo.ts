import { TYPE } from '../iana.ts';
import { name } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** Mailbox information (RFC 1035 section 3.3.7); obsolete. */
export const minfo: RecordKind<{
  responsible: string;
  errors: string;
}> = recordKind('MINFO', TYPE.MINFO, { responsible: name, errors: name });
