import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { texts, type Texts } from './shape.ts';

/** Sender policy (RFC 4408 section 3.1.1); obsolete, superseded by TXT. */
export const spf: RecordKind<Texts> = recordKind('SPF', TYPE.SPF, texts);
