import { TYPE } from '../iana.ts';
import { string } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** Address in an X.25 network (RFC 1183 section 3.1). */
export const x25: RecordKind<{
  address: string;
}> = recordKind('X25', TYPE.X25, { address: string });
