import { TYPE } from '../iana.ts';
import { name, u32 } from './field.ts';
import { recordKind } from './kind.ts';

/** Start of a zone of authority (RFC 1035 section 3.3.13); times in seconds. */
export const soa = recordKind('SOA', TYPE.SOA, {
  mname: name,
  rname: name,
  serial: u32,
  refresh: u32,
  retry: u32,
  expire: u32,
  minimum: u32,
});
