import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { oneName, type Pointer } from './shape.ts';

/** Mail rename (RFC 1035 section 3.3.8); obsolete. */
export const mr: RecordKind<Pointer> = recordKind('MR', TYPE.MR, oneName);
