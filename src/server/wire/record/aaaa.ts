import { TYPE } from '../iana.ts';
import { ipv6 } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** IPv6 address (RFC 3596 section 2.1). */
export const aaaa: RecordKind<{
  address: string;
}> = recordKind('AAAA', TYPE.AAAA, { address: ipv6 });
