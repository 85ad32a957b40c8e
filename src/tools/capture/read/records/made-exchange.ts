/**
 * Builds exchanges from sources that have no packets. Logs contain only the question and result, and dnstap may omit
 * the query.
 */
import { FLAG, HEADER } from '../../../../server/wire/iana.ts';
import { writeMessage } from '../../../../server/wire/message.ts';
import { foldName, parseName, printName } from '../../../../server/wire/name.ts';
import type { Peer } from '../../../../server/wire/exchange.ts';
import type { Logged, SeenExchange } from '../../pair/seen-exchange.ts';

export interface LoggedExchange {
  readonly client: Peer;
  readonly server: Peer;
  readonly protocol: 'udp' | 'tcp';
  readonly id: number;
  readonly name: string;
  readonly type: number;
  readonly class: number;
  /** The size that limits the reply; 512 without EDNS. */
  readonly udpSize: number;
  readonly sentMs: number;
  readonly repliedMs: number;
  readonly rcode: number;
  /** The reply's flags, without its rcode. */
  readonly flags: number;
  /** Omitted: not from a log. */
  readonly logged?: Logged;
  readonly line: number;
}

/**
 * Builds an exchange whose messages have no records and only what is in the log.
 * @throws NameError
 */
export function madeExchange(logged: LoggedExchange): SeenExchange {
  const { id, type, rcode, flags, udpSize } = logged;
  const folded = printName(foldName(parseName(logged.name)));
  const question = [{ name: logged.name, type, class: logged.class }];
  const none = { answer: [], authority: [], additional: [], edns: null };
  const edns =
    udpSize > 512 ? { udpSize, version: 0, dnssecOk: false, options: [] as never[] } : null;
  const query = writeMessage({ id, flags: FLAG.RD, rcode: 0, question, ...none, edns });
  const replyFlags = (flags | FLAG.QR) & ~FLAG.RCODE;
  const reply = writeMessage({ id, flags: replyFlags, rcode: rcode & 15, question, ...none });
  return {
    protocol: logged.protocol,
    client: logged.client,
    server: logged.server,
    sentMs: logged.sentMs,
    query,
    repliedMs: logged.repliedMs,
    reply,
    queryBytes: query.length,
    replyBytes: reply.length,
    name: folded,
    type,
    id,
    ipId: 0,
    udpSize: edns === null ? 0 : udpSize,
    cookie: false,
    capitals: false,
    queryFrame: logged.line,
    replyFrame: logged.line,
    rcode,
    replyFlags: replyFlags | (rcode & 15),
    answers: 0,
    ending: 'answered',
    attempt: 1,
    hops: [],
    strandedBytes: 0,
    stray: null,
    growing: null,
    ...(logged.logged === undefined ? {} : { logged: logged.logged }),
  };
}

/** Rebuilds the query from its reply's header and question. */
export function queryOf(reply: Uint8Array): Uint8Array | null {
  if (reply.length < HEADER.SIZE || reply[4] !== 0 || reply[5] !== 1) return null;
  let at: number = HEADER.SIZE;
  while (at < reply.length && reply[at]! > 0 && reply[at]! < 64) at += reply[at]! + 1;
  const end = at + 5;
  if (end > reply.length || reply[at] !== 0) return null;
  const query = reply.slice(0, end);
  query[2] = query[2]! & 0x79;
  query[3] = 0;
  query.fill(0, 6, HEADER.SIZE);
  return query;
}
