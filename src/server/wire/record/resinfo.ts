import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { texts, type Texts } from './shape.ts';

/** What a resolver says of itself (RFC 9606 section 4), written as text is. */
export const resinfo: RecordKind<Texts> = recordKind('RESINFO', TYPE.RESINFO, texts);
