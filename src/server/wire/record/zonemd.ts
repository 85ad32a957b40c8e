import { TYPE } from '../iana.ts';
import { restHex, u32, u8 } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** Digest of a zone (RFC 8976 section 2.2). */
export const zonemd: RecordKind<{
  serial: number;
  scheme: number;
  algorithm: number;
  digest: Uint8Array;
}> = recordKind('ZONEMD', TYPE.ZONEMD, {
  serial: u32,
  scheme: u8,
  algorithm: u8,
  digest: restHex,
});
