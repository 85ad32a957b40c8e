import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { oneName, type Pointer } from './shape.ts';

/** Name server of a zone (RFC 1035 section 3.3.11). */
export const ns: RecordKind<Pointer> = recordKind('NS', TYPE.NS, oneName);
