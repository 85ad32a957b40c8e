/**
 * One name's addresses by server, with the period of each answer and the number of alternations at
 * one server. The order of addresses does not count.
 */
import { FIXED_HASH_START, nextFixedHash } from '../../../server/base/fixed-hash.ts';
import { printAddress } from '../../../server/base/ip.ts';
import { FLAG, TYPE } from '../../../server/wire/iana.ts';
import { Records } from '../../../server/wire/records.ts';
import { SECTION } from '../../../server/wire/writer.ts';
import { type SeenExchange, finalServer } from '../../capture/pair/seen-exchange.ts';

/** The most sets stored for one name; a name with more changes constantly. */
const SETS_MAX = 24;
const ADDRESSES_MAX = 4;

/** One set of addresses from one server. */
export interface AnswerSet {
  /** The queried address, and the server behind it if the capture shows it. */
  readonly asked: string;
  readonly server: string;
  readonly hash: number;
  /** The number of addresses, and the first ones. */
  readonly size: number;
  readonly addresses: readonly string[];
  /** True if a CNAME record leads to them, so they may belong to an external name. */
  isAlias: boolean;
  count: number;
  firstMs: number;
  lastMs: number;
  /** The highest TTL, seconds. */
  ttl: number;
  /** The sum of its reply times, milliseconds. */
  tookMs: number;
  /** The number of times that its TTL rose because the server fetched the addresses again. */
  renewed: number;
  /** The last of these times; -Infinity: there was none. */
  renewedMs: number;
  /** The last answer’s TTL, seconds. */
  lastTtl: number;
  /** Answers with TTL 0 since the last one with a TTL, and when they began. */
  zeros: number;
  zeroMs: number;
  /**
   * The number of times that another set of the same server came before it, and this one before
   * that.
   */
  returned: number;
}

const records = new Records();
const read = { hash: 0, size: 0, ttl: 0, isAlias: false };

export class AnswerSets {
  readonly list: AnswerSet[] = [];
  leftOut: number = 0;
  #last: AnswerSet | null = null;

  /** The highest TTL, seconds; 0 if there are no answers. */
  get ttl(): number {
    return this.list.reduce((highest, each) => Math.max(highest, each.ttl), 0);
  }

  get count(): number {
    return this.list.reduce((sum, each) => sum + each.count, 0);
  }

  add(exchange: SeenExchange): void {
    const { reply, replyFlags, server: asked, sentMs, repliedMs } = exchange;
    if (reply === null || (replyFlags & FLAG.TC) !== 0) return;
    if (reply.length < exchange.replyBytes || !readAddresses(reply, exchange.type)) return;
    const server = finalServer(exchange).address;
    const atMs = repliedMs ?? sentMs;
    let set = this.list.find(
      (each) => each.hash === read.hash && each.server === server && each.asked === asked.address,
    );
    if (set === undefined) {
      if (this.list.length >= SETS_MAX) {
        this.leftOut++;
        return;
      }
      set = {
        ...{ asked: asked.address, server, hash: read.hash, size: read.size },
        addresses: textsOf(reply, exchange.type),
        isAlias: read.isAlias,
        ...{ count: 0, firstMs: atMs, lastMs: atMs, ttl: 0, renewed: 0, lastTtl: read.ttl },
        ...{ tookMs: 0, returned: 0, renewedMs: -Infinity, zeros: 0, zeroMs: Infinity },
      };
      this.list.push(set);
    } else if (this.#last !== null && this.#last.hash !== set.hash) set.returned++;
    set.count++;
    set.tookMs += atMs - sentMs;
    set.firstMs = Math.min(set.firstMs, atMs);
    set.lastMs = Math.max(set.lastMs, atMs);
    set.ttl = Math.max(set.ttl, read.ttl);
    if (read.ttl > set.lastTtl) {
      set.renewed++;
      set.renewedMs = atMs;
    }
    if (read.ttl > 0) set.zeros = 0;
    else if (set.zeros++ === 0) set.zeroMs = atMs;
    set.lastTtl = read.ttl;
    this.#last = set;
  }
}

/** Reads hash, number and TTL of the addresses in a reply. @returns whether there are any */
function readAddresses(reply: Uint8Array, type: number): boolean {
  read.hash = 0;
  read.size = 0;
  read.ttl = Infinity;
  read.isAlias = false;
  for (records.over(reply); records.next() && records.section === SECTION.answer;) {
    if (records.type === TYPE.CNAME) read.isAlias = true;
    if (records.type !== type) continue;
    let hash = FIXED_HASH_START;
    for (let at = 0; at < records.dataLength; at++)
      hash = nextFixedHash(hash, reply[records.dataAt + at]!);
    // A sum does not depend on the order.
    read.hash = (read.hash + hash) | 0;
    read.size++;
    read.ttl = Math.min(read.ttl, records.writtenTtl);
  }
  return read.size > 0;
}

function textsOf(reply: Uint8Array, type: number): readonly string[] {
  const found: string[] = [];
  for (records.over(reply); records.next() && records.section === SECTION.answer;)
    if (records.type === type && found.length < ADDRESSES_MAX)
      found.push(printAddress(reply, records.dataAt, records.dataLength));
  return found.toSorted();
}
