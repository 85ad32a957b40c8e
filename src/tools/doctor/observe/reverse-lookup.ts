/** Questions that turn addresses into names (RFC 1035 section 3.5, RFC 3596 section 2.5). */
import { TYPE } from '../../../server/wire/iana.ts';
import { TYPE_CUT } from '../../capture/pair/message-head.ts';
import { isPrivate } from './private-address.ts';

/** No other name begins with this many labels of one hexadecimal digit, or with these. */
const REVERSE = /^(?:(?:[0-9a-f]\.){7}[0-9a-f]|(?:\d{1,3}\.){4}in-)/;

/** True for these questions, also if the capture has only the beginning. */
export function isReverseLookup(name: string, type: number): boolean {
  return type === TYPE.PTR || (type === TYPE_CUT && REVERSE.test(name));
}

const IPV4 = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.in-addr\.arpa\.$/;
/** Unique local addresses, fc00::/7 (RFC 4193). */
const LOCAL_IPV6 = /\.[cd]\.f\.ip6\.arpa\.$/;

/** True if the question asks for the name of a private address. */
export function isPrivateReverse(name: string, type: number): boolean {
  if (type !== TYPE.PTR) return false;
  const [, d, c, b, a] = IPV4.exec(name) ?? [];
  return a === undefined ? LOCAL_IPV6.test(name) : isPrivate(`${a}.${b}.${c}.${d}`);
}
