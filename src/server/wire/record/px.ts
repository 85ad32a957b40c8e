import { TYPE } from '../iana.ts';
import { fullName, u16 } from './field.ts';
import { recordKind, type RecordKind } from './kind.ts';

/** Mapping between X.400 and RFC 822 addresses (RFC 2163 section 4). Obsolete. */
export const px: RecordKind<{
  preference: number;
  map822: string;
  mapX400: string;
}> = recordKind('PX', TYPE.PX, {
  preference: u16,
  map822: fullName,
  mapX400: fullName,
});
