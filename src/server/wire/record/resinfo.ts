import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { texts, type Texts } from './shape.ts';

/** A resolver's self-description (RFC 9606, section 4), in the format of TXT. */
export const resinfo: RecordKind<Texts> = recordKind('RESINFO', TYPE.RESINFO, texts);
