import { TYPE } from '../iana.ts';
import { dashedHex } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** 48-bit layer-2 address (RFC 7043 section 3.1). */
export const eui48: RecordKind<{
  address: Uint8Array;
}> = recordKind('EUI48', TYPE.EUI48, { address: dashedHex(6) });
