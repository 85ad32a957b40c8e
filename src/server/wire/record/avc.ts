import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { texts, type Texts } from './shape.ts';

/** Application visibility and control (Cisco's DNS-AVC), in the format of TXT. */
export const avc: RecordKind<Texts> = recordKind('AVC', TYPE.AVC, texts);
