import { TYPE } from '../iana.ts';
import { hexGroups, u16 } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** Node identifier (ILNP, RFC 6742 section 2.1). */
export const nid: RecordKind<{
  preference: number;
  node: Uint8Array;
}> = recordKind('NID', TYPE.NID, { preference: u16, node: hexGroups });
