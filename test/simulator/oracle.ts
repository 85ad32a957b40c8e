/** Compares replies with the true values of names. */
import { FLAG, rcodeName, TYPE } from '../../src/server/wire/iana.ts';
import type { Message } from '../../src/server/wire/message.ts';
import { printData, printMessage } from '../../src/server/wire/print.ts';

/** The addresses in a reply, sorted and comma-separated. Without any, NODATA or the response code. */
export function answerOf({ rcode, answer }: Message): string {
  if (rcode !== 0) return rcodeName(rcode);
  const addresses = answer
    .filter(({ type }) => type === TYPE.A)
    .map(({ type, data }) => printData(type, data))
    .toSorted();
  return addresses.length === 0 ? 'NODATA' : addresses.join(',');
}

export interface Judged {
  readonly name: string;
  /** A or AAAA. All values are IPv4. */
  readonly type: string;
  readonly reply: Message;
  /** All acceptable values, including null if the name may be missing. */
  readonly values: ReadonlySet<string | null>;
  /** The maximum TTL of a record in seconds. */
  readonly longestTtl: number;
  /** True while upstreams are failing. In that case, the reply may also be a failure or truncated. */
  readonly mayFail: boolean;
}

/** @returns the fault in the reply, or null if there is none */
export function faultOf({ name, type, reply, values, longestTtl, mayFail }: Judged): string | null {
  const told = (text: string): string => `${name} ${type}: ${text}\n${printMessage(reply)}`;
  const tooLong = reply.answer.find(({ ttl }) => ttl > longestTtl);
  if (tooLong !== undefined) return told(`a TTL of ${tooLong.ttl}`);
  const right = new Set(
    [...values].map((value) => (value === null ? 'NXDOMAIN' : type === 'A' ? value : 'NODATA')),
  );
  // A name that has been removed still exists, without data, until its cache entries have expired.
  if (values.has(null) && values.size > 1) right.add('NODATA');
  const got = answerOf(reply);
  if (right.has(got)) return null;
  const isTruncated = (reply.flags & FLAG.TC) !== 0;
  if (mayFail && (isTruncated || got === 'SERVFAIL' || got === 'REFUSED')) return null;
  return told(`${got}, should be one of ${[...right].join(' ')}`);
}
