import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { oneName, type Pointer } from './shape.ts';

/** Mail group member (RFC 1035 section 3.3.6); obsolete. */
export const mg: RecordKind<Pointer> = recordKind('MG', TYPE.MG, oneName);
