import { TYPE } from '../iana.ts';
import { recordKind } from './kind.ts';
import { keyDigest } from './shape.ts';

/** Child's copy of DS (RFC 7344 section 3.1). */
export const cds = recordKind('CDS', TYPE.CDS, keyDigest);
