/** TSIG records. */
import { printBase64, parseBase64 } from '../encoding.ts';
import { rcodeName, rcodeNumber, TYPE } from '../iana.ts';
import { fullName, u16 } from './field.ts';
import { recordKind, type Field, type RecordKind } from './kind.ts';

/** Seconds since 1970, 48 bits. */
const signedAt: Field<number> = {
  read: (from) => from.u48(),
  write(value, to) {
    to.u16(Math.floor(value / 0x1_0000_0000));
    to.u32(value % 0x1_0000_0000);
  },
  print: String,
  parse: (from, what) => from.number(what, 0xffff_ffff_ffff),
};

/** A 16-bit length followed by that many bytes. In text, the length precedes the base64, which is omitted if empty. */
export const lengthAndBase64: Field<Uint8Array> = {
  read: (from) => from.bytes(from.u16()),
  write(value, to) {
    to.u16(value.length);
    to.bytes(value);
  },
  print: (value) => (value.length === 0 ? '0' : `${value.length} ${printBase64(value)}`),
  parse(from, what) {
    const length = from.number(what, 0xffff);
    const bytes = length === 0 ? new Uint8Array(0) : parseBase64(from.next(what));
    if (bytes?.length !== length) return from.fail(`${what} must be ${length} bytes of base64`);
    return bytes;
  },
};

/** A result code, written by name in text. */
export const errorCode: Field<number> = {
  ...u16,
  print: (value) => (value === 16 ? 'BADSIG' : value <= 0xfff ? rcodeName(value) : String(value)),
  parse(from, what) {
    const word = from.next(what);
    const code = word === 'BADSIG' ? 16 : (rcodeNumber(word) ?? Number(word));
    return code <= 0xffff
      ? code
      : from.fail(`${what} must be a result code, not ${JSON.stringify(word)}`);
  },
};

/** Signature over a message (RFC 8945 section 4.2). */
export const tsig: RecordKind<{
  algorithm: string;
  timeSigned: number;
  fudge: number;
  mac: Uint8Array;
  originalId: number;
  error: number;
  other: Uint8Array;
}> = recordKind('TSIG', TYPE.TSIG, {
  algorithm: fullName,
  timeSigned: signedAt,
  fudge: u16,
  mac: lengthAndBase64,
  originalId: u16,
  error: errorCode,
  other: lengthAndBase64,
});
