import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { oneName, type Pointer } from './shape.ts';

/** Mail forwarder (RFC 1035 section 3.3.5); obsolete. */
export const mf: RecordKind<Pointer> = recordKind('MF', TYPE.MF, oneName);
