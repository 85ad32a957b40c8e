import { TYPE } from '../iana.ts';
import { recordKind } from './kind.ts';
import { oneName } from './shape.ts';

/** Mail rename (RFC 1035 section 3.3.8); obsolete. */
export const mr = recordKind('MR', TYPE.MR, oneName);
