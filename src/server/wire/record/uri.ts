import { TYPE } from '../iana.ts';
import { restString, u16 } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** Mapping to a URI (RFC 7553 section 4). */
export const uri: RecordKind<{
  priority: number;
  weight: number;
  target: string;
}> = recordKind('URI', TYPE.URI, { priority: u16, weight: u16, target: restString });
