import { TYPE } from '../iana.ts';
import { dashedHex } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** 64-bit layer-2 address (RFC 7043 section 4.1). */
export const eui64: RecordKind<{
  address: Uint8Array;
}> = recordKind('EUI64', TYPE.EUI64, { address: dashedHex(8) });
