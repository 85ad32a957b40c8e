import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { publicKey } from './shape.ts';

/** Public key (RFC 2535 section 3.1); today for SIG(0) only. */
export const key: RecordKind<{
  flags: number;
  protocol: number;
  algorithm: number;
  publicKey: Uint8Array;
}> = recordKind('KEY', TYPE.KEY, publicKey);
