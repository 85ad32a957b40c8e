import { TYPE } from '../iana.ts';
import { recordKind } from './kind.ts';
import { oneName } from './shape.ts';

/** Mail group member (RFC 1035 section 3.3.6); obsolete. */
export const mg = recordKind('MG', TYPE.MG, oneName);
