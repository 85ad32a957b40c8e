import { TYPE } from '../iana.ts';
import { name, seconds, u32 } from './field.ts';
import { recordKind } from './kind.ts';

/** Start of a zone of authority (RFC 1035 section 3.3.13); times in seconds. */
export const soa = recordKind('SOA', TYPE.SOA, {
  mname: name,
  rname: name,
  serial: u32,
  refresh: seconds,
  retry: seconds,
  expire: seconds,
  minimum: seconds,
});
