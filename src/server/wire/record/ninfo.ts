import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { texts, type Texts } from './shape.ts';

/** Zone status (draft-reid-dnsext-zs), in the format of TXT. */
export const ninfo: RecordKind<Texts> = recordKind('NINFO', TYPE.NINFO, texts);
