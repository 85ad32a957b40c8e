import { TYPE } from '../iana.ts';
import { restBase64 } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** DHCID identifies the DHCP client that owns a name (RFC 4701 section 3.1). */
export const dhcid: RecordKind<{
  digest: Uint8Array;
}> = recordKind('DHCID', TYPE.DHCID, { digest: restBase64 });
