import { TYPE } from '../iana.ts';
import { hexGroups, u16 } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** 64-bit locator (ILNP, RFC 6742 section 2.3). */
export const l64: RecordKind<{
  preference: number;
  locator: Uint8Array;
}> = recordKind('L64', TYPE.L64, { preference: u16, locator: hexGroups });
