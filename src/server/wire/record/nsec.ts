import { TYPE } from '../iana.ts';
import { fullName } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { typeSet } from './type-field.ts';

/** Proof of non-existence (RFC 4034, section 4.1). */
export const nsec: RecordKind<{
  next: string;
  types: readonly number[];
}> = recordKind('NSEC', TYPE.NSEC, { next: fullName, types: typeSet });
