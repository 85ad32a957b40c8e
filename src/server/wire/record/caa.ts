/** CAA records. */
import { TYPE } from '../iana.ts';
import { restString, string, u8 } from './field.ts';
import { recordKind, type Field, type RecordKind } from './kind.ts';

/** Written without unneeded quotes, because property names consist of letters and digits. */
const tag: Field<string> = {
  ...string,
  print: (value) => (/^[\w-]+$/.test(value) ? value : `"${value}"`),
};

/** CAA, which lists the authorities that may issue certificates (RFC 8659 section 4.1). */
export const caa: RecordKind<{
  flags: number;
  tag: string;
  value: string;
}> = recordKind('CAA', TYPE.CAA, { flags: u8, tag, value: restString });
