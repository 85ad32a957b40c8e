import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { oneFullName, type Pointer } from './shape.ts';

/** Name of an NSAP address (RFC 1348); obsolete. */
export const nsapPtr: RecordKind<Pointer> = recordKind('NSAP-PTR', TYPE['NSAP-PTR'], oneFullName);
