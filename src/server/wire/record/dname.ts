import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { oneFullName, type Pointer } from './shape.ts';

/** Redirection of the subtree under a name (RFC 6672 section 2.1). */
export const dname: RecordKind<Pointer> = recordKind('DNAME', TYPE.DNAME, oneFullName);
