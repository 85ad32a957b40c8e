import { TYPE } from '../iana.ts';
import { recordKind } from './kind.ts';
import { oneName } from './shape.ts';

/** Name server of a zone (RFC 1035 section 3.3.11). */
export const ns = recordKind('NS', TYPE.NS, oneName);
