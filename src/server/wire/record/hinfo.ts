import { TYPE } from '../iana.ts';
import { string } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** Host information (RFC 1035 section 3.3.2), which is also the minimal answer to ANY (RFC 8482). */
export const hinfo: RecordKind<{
  cpu: string;
  os: string;
}> = recordKind('HINFO', TYPE.HINFO, { cpu: string, os: string });
