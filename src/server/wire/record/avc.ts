import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { texts, type Texts } from './shape.ts';

/** Application visibility (DNS-AVC of Cisco), written as text is. */
export const avc: RecordKind<Texts> = recordKind('AVC', TYPE.AVC, texts);
