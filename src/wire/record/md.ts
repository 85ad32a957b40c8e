import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { oneName } from './shape.ts';

/** Mail destination (RFC 1035 section 3.3.4); obsolete. */
export const md: RecordKind<{
  target: string;
}> = recordKind('MD', TYPE.MD, oneName);
