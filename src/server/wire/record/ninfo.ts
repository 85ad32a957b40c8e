import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { texts, type Texts } from './shape.ts';

/** Status of a zone (draft-reid-dnsext-zs), written as text is. */
export const ninfo: RecordKind<Texts> = recordKind('NINFO', TYPE.NINFO, texts);
