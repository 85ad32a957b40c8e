import { TYPE } from '../iana.ts';
import { fullName } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** Responsible person (RFC 1183 section 2.2). */
export const rp: RecordKind<{
  mailbox: string;
  text: string;
}> = recordKind('RP', TYPE.RP, { mailbox: fullName, text: fullName });
