/** Questions that turn addresses into names (RFC 1035 section 3.5, RFC 3596 section 2.5). */
import { TYPE } from '../../../server/wire/iana.ts';
import { TYPE_CUT } from '../../capture/pair/message-head.ts';

/** No other name begins with so many labels of one hexadecimal digit, or so. */
const REVERSE = /^(?:(?:[0-9a-f]\.){7}[0-9a-f]|(?:\d{1,3}\.){4}in-)/;

/** Whether a question is one of these, be it that the capture has only its beginning. */
export function isReverseLookup(name: string, type: number): boolean {
  return type === TYPE.PTR || (type === TYPE_CUT && REVERSE.test(name));
}
