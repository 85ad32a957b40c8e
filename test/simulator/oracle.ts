/** Compares replies with the true values of names. */
import { FLAG, rcodeName, TYPE } from '../../src/server/wire/iana.ts';
import type { Message } from '../../src/server/wire/message.ts';
import { printData, printMessage } from '../../src/server/wire/print.ts';

/** The addresses of a reply, sorted, with commas; else NODATA or the result code. */
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
  /** A or AAAA; all values are IPv4. */
  readonly type: string;
  readonly reply: Message;
  /** Every value that may be answered; null: the name does not exist. */
  readonly values: ReadonlySet<string | null>;
  /** The longest TTL of a record, seconds. */
  readonly longestTtl: number;
  /** True while upstreams fail: then the reply may be a failure, or truncated. */
  readonly mayFail: boolean;
}

/** @returns what is wrong with the reply; null: nothing */
export function faultOf({ name, type, reply, values, longestTtl, mayFail }: Judged): string | null {
  const told = (text: string): string => `${name} ${type}: ${text}\n${printMessage(reply)}`;
  const tooLong = reply.answer.find(({ ttl }) => ttl > longestTtl);
  if (tooLong !== undefined) return told(`a TTL of ${tooLong.ttl}`);
  const right = new Set(
    [...values].map((value) => (value === null ? 'NXDOMAIN' : type === 'A' ? value : 'NODATA')),
  );
  // A name that is removed keeps existing without data until its entries in the cache have ended.
  if (values.has(null) && values.size > 1) right.add('NODATA');
  const got = answerOf(reply);
  if (right.has(got)) return null;
  const isTruncated = (reply.flags & FLAG.TC) !== 0;
  if (mayFail && (isTruncated || got === 'SERVFAIL' || got === 'REFUSED')) return null;
  return told(`${got}, should be one of ${[...right].join(' ')}`);
}
