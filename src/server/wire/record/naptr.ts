import { TYPE } from '../iana.ts';
import { fullName, string, u16 } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** Naming authority pointer (RFC 3403 section 4.1). */
export const naptr: RecordKind<{
  order: number;
  preference: number;
  flags: string;
  services: string;
  regexp: string;
  replacement: string;
}> = recordKind('NAPTR', TYPE.NAPTR, {
  order: u16,
  preference: u16,
  flags: string,
  services: string,
  regexp: string,
  replacement: fullName,
});
