import { TYPE } from '../iana.ts';
import { ipv4 } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** IPv4 address (RFC 1035 section 3.4.1). */
export const a: RecordKind<{
  address: string;
}> = recordKind('A', TYPE.A, { address: ipv4 });
