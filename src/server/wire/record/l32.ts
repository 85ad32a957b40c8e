import { TYPE } from '../iana.ts';
import { ipv4, u16 } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** 32-bit locator (ILNP, RFC 6742 section 2.2). */
export const l32: RecordKind<{
  preference: number;
  locator: string;
}> = recordKind('L32', TYPE.L32, { preference: u16, locator: ipv4 });
