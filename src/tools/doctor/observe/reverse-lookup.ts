/** Questions that turn addresses into names (RFC 1035 section 3.5, RFC 3596 section 2.5). */
import { TYPE } from '../../../server/wire/iana.ts';
import { TYPE_CUT } from '../../capture/pair/message-head.ts';

/** No other name begins with this many labels of one hexadecimal digit, or with these. */
const REVERSE = /^(?:(?:[0-9a-f]\.){7}[0-9a-f]|(?:\d{1,3}\.){4}in-)/;

/** True for these questions, also if the capture has only the beginning. */
export function isReverseLookup(name: string, type: number): boolean {
  return type === TYPE.PTR || (type === TYPE_CUT && REVERSE.test(name));
}
