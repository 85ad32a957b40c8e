/** CERT records. */
import { TYPE } from '../iana.ts';
import { restBase64, u16, u8 } from './field.ts';
import { recordKind, type Field, type RecordKind } from './kind.ts';

/** By number (RFC 4398 section 2.1). */
const certificateTypes = new Map([
  [1, 'PKIX'],
  [2, 'SPKI'],
  [3, 'PGP'],
  [4, 'IPKIX'],
  [5, 'ISPKI'],
  [6, 'IPGP'],
  [7, 'ACPKIX'],
  [8, 'IACPKIX'],
  [253, 'URI'],
  [254, 'OID'],
]);

/** By number (RFC 4034 appendix A.1 and its successors). */
const algorithms = new Map([
  [1, 'RSAMD5'],
  [2, 'DH'],
  [3, 'DSA'],
  [5, 'RSASHA1'],
  [6, 'NSEC3DSA'],
  [7, 'NSEC3RSASHA1'],
  [8, 'RSASHA256'],
  [10, 'RSASHA512'],
  [12, 'ECCGOST'],
  [13, 'ECDSAP256SHA256'],
  [14, 'ECDSAP384SHA384'],
  [15, 'ED25519'],
  [16, 'ED448'],
  [252, 'INDIRECT'],
  [253, 'PRIVATEDNS'],
  [254, 'PRIVATEOID'],
]);

/** A number that has a name in text form. */
function named(number: Field<number>, names: ReadonlyMap<number, string>): Field<number> {
  const byName = new Map([...names].map(([value, name]) => [name, value]));
  return {
    ...number,
    print: (value) => names.get(value) ?? String(value),
    parse(from, what) {
      const known = byName.get(from.next(what).toUpperCase());
      if (known !== undefined) return known;
      from.index--;
      return number.parse(from, what);
    },
  };
}

/** A certificate or its location (RFC 4398 section 2). */
export const cert: RecordKind<{
  certificateType: number;
  keyTag: number;
  algorithm: number;
  certificate: Uint8Array;
}> = recordKind('CERT', TYPE.CERT, {
  certificateType: named(u16, certificateTypes),
  keyTag: u16,
  algorithm: named(u8, algorithms),
  certificate: restBase64,
});
