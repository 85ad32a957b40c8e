import { TYPE } from '../iana.ts';
import { fullName, u16 } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** Location of a service (RFC 2782). */
export const srv: RecordKind<{
  priority: number;
  weight: number;
  port: number;
  target: string;
}> = recordKind('SRV', TYPE.SRV, {
  priority: u16,
  weight: u16,
  port: u16,
  target: fullName,
});
