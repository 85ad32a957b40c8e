import { TYPE } from '../iana.ts';
import { name, seconds, u32 } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** Start of a zone of authority (RFC 1035 section 3.3.13). Times are in seconds. */
export const soa: RecordKind<{
  mname: string;
  rname: string;
  serial: number;
  refresh: number;
  retry: number;
  expire: number;
  minimum: number;
}> = recordKind('SOA', TYPE.SOA, {
  mname: name,
  rname: name,
  serial: u32,
  refresh: seconds,
  retry: seconds,
  expire: seconds,
  minimum: seconds,
});
