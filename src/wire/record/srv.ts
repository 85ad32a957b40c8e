import { TYPE } from '../iana.ts';
import { fullName, u16 } from './field.ts';
import { recordKind } from './kind.ts';

/** Location of a service (RFC 2782). */
export const srv = recordKind('SRV', TYPE.SRV, {
  priority: u16,
  weight: u16,
  port: u16,
  target: fullName,
});
