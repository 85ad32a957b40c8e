import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { oneFullName } from './shape.ts';

/** Redirection of the tree below a name (RFC 6672 section 2.1). */
export const dname: RecordKind<{
  target: string;
}> = recordKind('DNAME', TYPE.DNAME, oneFullName);
