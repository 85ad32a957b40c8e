import { TYPE } from '../iana.ts';
import { restBase64, u16, u8 } from './field.ts';
import { recordKind, type Field } from './kind.ts';

/** By number (RFC 4398 section 2.1). */
const certificateTypes = ['', 'PKIX', 'SPKI', 'PGP', 'IPKIX', 'ISPKI', 'IPGP', 'ACPKIX', 'IACPKIX'];

const certificateType: Field<number> = {
  ...u16,
  print: (value) => certificateTypes[value] || String(value),
  parse(from, what) {
    const known = certificateTypes.indexOf(from.next(what).toUpperCase());
    if (known > 0) return known;
    from.index--;
    return from.number(what, 0xffff);
  },
};

/** A certificate or where it is (RFC 4398 section 2). */
export const cert = recordKind('CERT', TYPE.CERT, {
  certificateType,
  keyTag: u16,
  algorithm: u8,
  certificate: restBase64,
});
