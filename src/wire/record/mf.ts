import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { oneName } from './shape.ts';

/** Mail forwarder (RFC 1035 section 3.3.5); obsolete. */
export const mf: RecordKind<{
  target: string;
}> = recordKind('MF', TYPE.MF, oneName);
