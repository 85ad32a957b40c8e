import { TYPE } from '../iana.ts';
import { recordKind } from './kind.ts';
import { oneName } from './shape.ts';

/** The canonical name of an alias (RFC 1035 section 3.3.1). */
export const cname = recordKind('CNAME', TYPE.CNAME, oneName);
