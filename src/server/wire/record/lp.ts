import { TYPE } from '../iana.ts';
import { fullName, u16 } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** Locator pointer (ILNP, RFC 6742 section 2.4). */
export const lp: RecordKind<{
  preference: number;
  target: string;
}> = recordKind('LP', TYPE.LP, { preference: u16, target: fullName });
