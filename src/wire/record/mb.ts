import { TYPE } from '../iana.ts';
import { recordKind } from './kind.ts';
import { oneName } from './shape.ts';

/** Mailbox (RFC 1035 section 3.3.3); obsolete. */
export const mb = recordKind('MB', TYPE.MB, oneName);
