import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { certificate } from './shape.ts';

/** Certificate of a mail address (RFC 8162 section 2). */
export const smimea: RecordKind<{
  usage: number;
  selector: number;
  matching: number;
  certificate: Uint8Array;
}> = recordKind('SMIMEA', TYPE.SMIMEA, certificate);
