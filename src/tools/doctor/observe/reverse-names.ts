/** Reverse lookups of private addresses. */
import { TYPE } from '../../../server/wire/iana.ts';
import { isPrivate } from './private-address.ts';

const IPV4 = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.in-addr\.arpa\.$/;
/** Unique local addresses, fc00::/7 (RFC 4193). */
const LOCAL_IPV6 = /\.[cd]\.f\.ip6\.arpa\.$/;

/** True if the question asks for the name of a private address. */
export function isPrivateReverse(name: string, type: number): boolean {
  if (type !== TYPE.PTR) return false;
  const [, d, c, b, a] = IPV4.exec(name) ?? [];
  return a === undefined ? LOCAL_IPV6.test(name) : isPrivate(`${a}.${b}.${c}.${d}`);
}
