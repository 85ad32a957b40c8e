import { TYPE } from '../iana.ts';
import { fullName } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** The previous and next trust anchors (draft-wijngaards-dnsop-trust-history). */
export const talink: RecordKind<{
  before: string;
  behind: string;
}> = recordKind('TALINK', TYPE.TALINK, { before: fullName, behind: fullName });
