import { TYPE } from '../iana.ts';
import { fullName, u16 } from './field.ts';
import { recordKind } from './kind.ts';
import { serviceParameters } from './service-parameter.ts';

/** How to reach a web origin (RFC 9460 section 9). Priority 0 is an alias. */
export const https = recordKind('HTTPS', TYPE.HTTPS, {
  priority: u16,
  target: fullName,
  parameters: serviceParameters,
});
