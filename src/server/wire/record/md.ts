import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { oneName, type Pointer } from './shape.ts';

/** Mail destination (RFC 1035 section 3.3.4); obsolete. */
export const md: RecordKind<Pointer> = recordKind('MD', TYPE.MD, oneName);
