import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { texts, type Texts } from './shape.ts';

/** Text (RFC 1035 section 3.3.14). */
export const txt: RecordKind<Texts> = recordKind('TXT', TYPE.TXT, texts);
