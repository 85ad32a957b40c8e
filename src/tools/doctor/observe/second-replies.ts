/** Queries that got two replies with different addresses: one of the two is not the server’s. */
import { printAddress } from '../../../server/base/ip.ts';
import { FLAG, HEADER, isAddressType } from '../../../server/wire/iana.ts';
import { Records } from '../../../server/wire/records.ts';
import { SECTION } from '../../../server/wire/writer.ts';
import { CopiedBytes } from '../../capture/pair/copied-bytes.ts';
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';

const PAIRS_MAX = 2000;
const ADDRESSES_MAX = 8;

export interface ReplyContent {
  readonly addresses: readonly string[];
  /** The least, seconds. */
  readonly ttl: number;
  readonly isAuthoritative: boolean;
  readonly tookMs: number;
}

export interface SecondReply {
  readonly exchange: SeenExchange;
  readonly first: ReplyContent;
  readonly second: ReplyContent;
}

const records = new Records();

export class SecondReplies {
  readonly list: SecondReply[] = [];
  readonly #kept = new CopiedBytes();

  add(exchange: SeenExchange, reply: Uint8Array, timeMs: number): void {
    const { reply: before, type, repliedMs, sentMs } = exchange;
    if (before === null || repliedMs === null || this.list.length >= PAIRS_MAX) return;
    const first = contentOf(before, type, repliedMs - sentMs);
    const second = contentOf(reply, type, timeMs - sentMs);
    if (first.addresses.length === 0 || second.addresses.length === 0) return;
    if (first.addresses.some((address) => second.addresses.includes(address))) return;
    this.#kept.keep(exchange);
    this.list.push({ exchange, first, second });
  }
}

function contentOf(reply: Uint8Array, type: number, tookMs: number): ReplyContent {
  const addresses: string[] = [];
  let ttl = Infinity;
  if (isAddressType(type))
    for (records.over(reply); records.next() && records.section === SECTION.answer;) {
      if (records.type !== type || addresses.length >= ADDRESSES_MAX) continue;
      addresses.push(printAddress(reply, records.dataAt, records.dataLength));
      ttl = Math.min(ttl, records.writtenTtl);
    }
  const flags = reply.length >= HEADER.SIZE ? (reply[2]! << 8) | reply[3]! : 0;
  return { addresses, ttl, isAuthoritative: (flags & FLAG.AA) !== 0, tookMs };
}
