import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { oneName, type Pointer } from './shape.ts';

/** A pointer to another name, as in reverse zones (RFC 1035 section 3.3.12). */
export const ptr: RecordKind<Pointer> = recordKind('PTR', TYPE.PTR, oneName);
