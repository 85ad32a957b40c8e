import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { oneName, type Pointer } from './shape.ts';

/** The canonical name of an alias (RFC 1035 section 3.3.1). */
export const cname: RecordKind<Pointer> = recordKind('CNAME', TYPE.CNAME, oneName);
