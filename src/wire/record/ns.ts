import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { oneName } from './shape.ts';

/** Name server of a zone (RFC 1035 section 3.3.11). */
export const ns: RecordKind<{
  target: string;
}> = recordKind('NS', TYPE.NS, oneName);
