import { TYPE } from '../iana.ts';
import { restBase64 } from './field.ts';
import { recordKind } from './kind.ts';

/** Which DHCP client owns a name (RFC 4701 section 3.1). */
export const dhcid = recordKind('DHCID', TYPE.DHCID, { digest: restBase64 });
