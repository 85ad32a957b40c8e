import { TYPE } from '../iana.ts';
import { fullName, u16 } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { serviceParameters, type ServiceParameter } from './service-parameter.ts';

/** How to reach a web origin (RFC 9460 section 9). Priority 0 is an alias. */
export const https: RecordKind<{
  priority: number;
  target: string;
  parameters: readonly ServiceParameter[];
}> = recordKind('HTTPS', TYPE.HTTPS, {
  priority: u16,
  target: fullName,
  parameters: serviceParameters,
});
