import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { oneName, type Pointer } from './shape.ts';

/** Mailbox (RFC 1035 section 3.3.3); obsolete. */
export const mb: RecordKind<Pointer> = recordKind('MB', TYPE.MB, oneName);
