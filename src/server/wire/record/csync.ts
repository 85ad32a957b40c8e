import { TYPE } from '../iana.ts';
import { u16, u32 } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { typeSet } from './type-field.ts';

/** Child-to-parent synchronisation (RFC 7477 section 2.1). */
export const csync: RecordKind<{
  serial: number;
  flags: number;
  types: readonly number[];
}> = recordKind('CSYNC', TYPE.CSYNC, { serial: u32, flags: u16, types: typeSet });
