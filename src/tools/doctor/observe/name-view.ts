/**
 * The replies for one name and type, with servers, times and addresses. All names share the rows
 * that hold the counts.
 */
import { FLAG, RCODE, TYPE } from '../../../server/wire/iana.ts';
import { readMessage } from '../../../server/wire/message.ts';
import { printData } from '../../../server/wire/print.ts';
import { ReadError } from '../../../server/wire/reader.ts';
import { Records } from '../../../server/wire/records.ts';
import { SECTION } from '../../../server/wire/writer.ts';
import {
  bytesOf,
  isLost,
  latencyOf,
  UDP_BYTES,
  type SeenExchange,
} from '../../capture/pair/seen-exchange.ts';
import { AnswerSets } from './answer-sets.ts';
import { NumberRows } from './number-rows.ts';
import { isFailure, outcomeOf, outcomeOrder, type Outcomes } from './outcomes.ts';

const SERVERS_MAX = 8;
const ADDRESSES_MAX = 4;
const TTLS_MAX = 16;
/**
 * An unchanged TTL is ignored for this long, milliseconds. Otherwise a busy capture would store only
 * the first moment.
 */
const SAME_TTL_MS = 1000;
const CACHED_MS = 1.5;

/** True if the reply came too soon for the server to have queried another one. */
export function isAtOnce(exchange: Pick<SeenExchange, 'sentMs' | 'repliedMs'>): boolean {
  return (latencyOf(exchange) ?? Infinity) < CACHED_MS;
}

/** A negative answer's TTL, seconds, with its time and server. */
export interface NegativeTtl {
  readonly ms: number;
  readonly ttl: number;
  readonly server: string;
}

/**
 * The times at which one server denied a name and had it, milliseconds since 1970; Infinity if
 * never.
 */
export interface ServerTimes {
  readonly server: string;
  /**
   * The last NXDOMAIN, and the time until which all its denials may be cached according to their
   * TTLs; -Infinity if there is none.
   */
  readonly missingMs: number;
  readonly untilMs: number;
  /** The first reply that shows that the name exists. */
  readonly existsMs: number;
}

/** Consecutive errors: NXDOMAIN, SERVFAIL, REFUSED. */
export interface ErrorRun {
  readonly fromMs: number;
  readonly toMs: number;
  readonly count: number;
}

/** Consecutive negative answers after the name had been found. */
export interface Absence extends ErrorRun {
  /** The last time before them that the name was found. */
  readonly foundMs: number;
}

// Positions in a name’s row. The outcomes come first, in `outcomeOrder`.
const FOUND = outcomeOrder.indexOf('found');
const NODATA = outcomeOrder.indexOf('nodata');
const SOCKETS = outcomeOrder.length;
const LONGEST = SOCKETS + 1;
const QUICK_FAILURES = SOCKETS + 2;
/** Port of the previous query. */
const PORT = SOCKETS + 3;
/** The first rows of lists (1-based, 0 for an empty list), and the lengths of the lists. */
const SERVERS = SOCKETS + 4;
const SERVER_COUNT = SOCKETS + 5;
const ANSWERED = SOCKETS + 6;
const ANSWERED_COUNT = SOCKETS + 7;
const TTLS = SOCKETS + 8;
const TTL_COUNT = SOCKETS + 9;
/** Streaks: the number of answers in the current and the longest one; 0 if there is none. */
const DENIED_NOW = SOCKETS + 10;
const DENIED = SOCKETS + 11;
const ABSENT_NOW = SOCKETS + 12;
const ABSENT = SOCKETS + 13;
/** The number of times that the name was gone after it had been found. */
const DEPARTURES = SOCKETS + 14;
/**
 * NXDOMAIN replies before the first one that shows that the name exists, and such replies since the
 * last NXDOMAIN.
 */
const MISSING_FIRST = SOCKETS + 15;
const EXISTING_LAST = SOCKETS + 16;
/** The highest TTL of an NXDOMAIN reply, seconds. */
const LONGEST_TTL = SOCKETS + 17;
const COUNTS = SOCKETS + 18;

const FIRST_FOUND = 0;
const LAST_FOUND = 1;
const FIRST_NEGATIVE = 2;
const LAST_NEGATIVE = 3;
/** Start and end of each streak, and for absence the time at which the name was last found. */
const DENIED_NOW_TIMES = 4;
const DENIED_TIMES = 6;
const ABSENT_NOW_TIMES = 8;
const ABSENT_TIMES = 11;
const TIMES = 14;

/** Positions in a list’s row: the previous row (counted from 1), the server, and the item. */
const NEXT = 0;
const SERVER = 1;
const LISTED = 2;
/** In the row of a server, behind its outcomes: complete replies that UDP can carry. */
const WHOLE = LISTED + outcomeOrder.length;

/**
 * Times in a server’s row: the first reply with the name, the last denial, and the end of that
 * denial’s TTL; 0 if there is none.
 */
const FIRST_EXISTING = 0;
const LAST_MISSING = 1;
const MISSING_UNTIL = 2;

/** Storage that all names share: rows, lists, and server addresses. */
export class NameRows {
  readonly names: NumberRows = new NumberRows(COUNTS, TIMES);
  readonly servers: NumberRows = new NumberRows(WHOLE + 1, 3);
  readonly answered: NumberRows = new NumberRows(LISTED, 1);
  readonly ttls: NumberRows = new NumberRows(LISTED + 1, 1);
  readonly #addresses: string[] = [];
  readonly #numbers = new Map<string, number>();

  /** The server’s number, assigned on first use. */
  numberOf(address: string): number {
    let number = this.#numbers.get(address);
    if (number === undefined) {
      number = this.#addresses.length;
      this.#addresses.push(address);
      this.#numbers.set(address, number);
    }
    return number;
  }

  addressOf(number: number): string {
    return this.#addresses[number]!;
  }

  /** -1 if the server has none, so that it is not counted. */
  knownNumberOf(address: string): number {
    return this.#numbers.get(address) ?? -1;
  }
}

const none: readonly string[] = [];

/** The counts for one name and type. */
export class NameView {
  readonly name: string;
  readonly type: number;
  /** Addresses in the first answers. */
  addresses: readonly string[] = none;
  /** The addresses that each server returned; null if there are none. */
  sets: AnswerSets | null = null;
  readonly #rows: NameRows;
  readonly #row: number;
  #client = '';
  #otherClient = '';

  constructor(name: string, type: number, rows: NameRows) {
    this.name = name;
    this.type = type;
    this.#rows = rows;
    const { names } = rows;
    const row = names.add();
    this.#row = row;
    names.setTime(row, FIRST_FOUND, Infinity);
    names.setTime(row, LAST_FOUND, -Infinity);
    names.setTime(row, FIRST_NEGATIVE, Infinity);
    names.setTime(row, LAST_NEGATIVE, -Infinity);
  }

  get outcomes(): Outcomes {
    return outcomesIn(this.#rows.names, this.#row, 0);
  }

  /** The number of queries from a different socket than the previous one. */
  get sockets(): number {
    return this.#rows.names.count(this.#row, SOCKETS);
  }

  /** The last two clients, one of which may forward the other’s queries. */
  get lastClients(): readonly string[] {
    return [this.#client, this.#otherClient].filter((client) => client !== '');
  }

  /**
   * Size in bytes of the longest reply that a client got or that was seen in transit. A truncated
   * one counts as too long for any packet.
   */
  get longest(): number {
    return this.#rows.names.count(this.#row, LONGEST);
  }

  /** Records the size of its replies elsewhere, bytes. */
  knowLength(bytes: number): void {
    const { names } = this.#rows;
    names.setCount(this.#row, LONGEST, Math.max(names.count(this.#row, LONGEST), bytes));
  }

  /** SERVFAIL replies that appear to come from a cache. */
  get quickFailures(): number {
    return this.#rows.names.count(this.#row, QUICK_FAILURES);
  }

  get firstFoundMs(): number {
    return this.#rows.names.time(this.#row, FIRST_FOUND);
  }

  get lastFoundMs(): number {
    return this.#rows.names.time(this.#row, LAST_FOUND);
  }

  get firstNegativeMs(): number {
    return this.#rows.names.time(this.#row, FIRST_NEGATIVE);
  }

  get lastNegativeMs(): number {
    return this.#rows.names.time(this.#row, LAST_NEGATIVE);
  }

  /** Complete replies that came over UDP or are small enough for it, of this server or one behind a service. */
  wholeBy(server: string): number {
    const at = this.#rowOf(this.#rows.servers, SERVERS, server);
    return at < 0 ? 0 : this.#rows.servers.count(at, WHOLE);
  }

  /** Outcomes by server; by the servers behind a Service if they are visible. */
  get servers(): ServerOutcomes {
    return new ServerOutcomes(this.#rows, this.#rows.names.count(this.#row, SERVERS));
  }

  /**
   * The times at which each server denied the name and had it; by the servers behind a Service if
   * they are visible.
   */
  get serverTimes(): readonly ServerTimes[] {
    const { names, servers } = this.#rows;
    const found: ServerTimes[] = [];
    for (let at = names.count(this.#row, SERVERS); at > 0; at = servers.count(at - 1, NEXT))
      found.push({
        server: this.#rows.addressOf(servers.count(at - 1, SERVER)),
        missingMs: servers.time(at - 1, LAST_MISSING) || -Infinity,
        untilMs: servers.time(at - 1, MISSING_UNTIL) || -Infinity,
        existsMs: servers.time(at - 1, FIRST_EXISTING) || Infinity,
      });
    return found.toReversed();
  }

  /** The number of denials before the first reply that shows that it exists. */
  get missingFirst(): number {
    return this.#rows.names.count(this.#row, MISSING_FIRST);
  }

  /** The number of replies since the last denial that show that it exists. */
  get existingLast(): number {
    return this.#rows.names.count(this.#row, EXISTING_LAST);
  }

  /** The highest TTL of its NXDOMAIN replies, seconds. */
  get longestTtl(): number {
    return this.#rows.names.count(this.#row, LONGEST_TTL);
  }

  /**
   * By queried address, the time of the last query that was answered without a failure,
   * milliseconds since 1970.
   */
  get answeredMs(): ReadonlyMap<string, number> {
    const { names, answered } = this.#rows;
    const found: (readonly [string, number])[] = [];
    for (let at = names.count(this.#row, ANSWERED); at > 0; at = answered.count(at - 1, NEXT))
      found.push([
        this.#rows.addressOf(answered.count(at - 1, SERVER)),
        answered.time(at - 1, 0),
      ] as const);
    return new Map(found.toReversed());
  }

  /** The number of known TTLs of negative answers. */
  get negativeTtlCount(): number {
    return this.#rows.names.count(this.#row, TTL_COUNT);
  }

  /** The first TTLs of negative answers, in order of arrival. */
  get negativeTtls(): readonly NegativeTtl[] {
    const { names, ttls } = this.#rows;
    const found: NegativeTtl[] = [];
    for (let at = names.count(this.#row, TTLS); at > 0; at = ttls.count(at - 1, NEXT))
      found.push({
        ms: ttls.time(at - 1, 0),
        ttl: ttls.count(at - 1, LISTED),
        server: this.#rows.addressOf(ttls.count(at - 1, SERVER)),
      });
    return found.toReversed();
  }

  /** The longest run of errors; null if there was none. */
  get denial(): ErrorRun | null {
    const { names } = this.#rows;
    const count = names.count(this.#row, DENIED);
    if (count === 0) return null;
    const fromMs = names.time(this.#row, DENIED_TIMES);
    return { fromMs, toMs: names.time(this.#row, DENIED_TIMES + 1), count };
  }

  /** The longest time for which the name was gone; null if it never was. */
  get absence(): Absence | null {
    const { names } = this.#rows;
    const count = names.count(this.#row, ABSENT);
    if (count === 0) return null;
    const [fromMs, toMs, foundMs] = [0, 1, 2].map((at) =>
      names.time(this.#row, ABSENT_TIMES + at),
    ) as [number, number, number];
    return { fromMs, toMs, foundMs, count };
  }

  /** The number of times that the name disappeared after it had been found. */
  get departures(): number {
    return this.#rows.names.count(this.#row, DEPARTURES);
  }

  add(exchange: SeenExchange): void {
    const { names } = this.#rows;
    const row = this.#row;
    const outcome = outcomeOf(exchange);
    countIn(names, row, 0, outcome);
    const { client } = exchange;
    if (client.port !== names.count(row, PORT) || client.address !== this.#client)
      names.increment(row, SOCKETS);
    names.setCount(row, PORT, client.port);
    if (client.address !== this.#client) this.#otherClient = this.#client;
    this.#client = client.address;
    const server = exchange.hops.at(-1)?.server.address ?? exchange.server.address;
    const ttl =
      exchange.rcode === RCODE.NXDOMAIN && !isLost(exchange) ? negativeTtlOf(exchange.reply!) : -1;
    this.#countServer(server, outcome, exchange, ttl);
    // An error says nothing about the size of the answer.
    if (isLost(exchange) || !isFailure(exchange)) this.knowLength(bytesOf(exchange));
    if (isLost(exchange)) return;
    const { repliedMs, rcode, answers } = exchange;
    const at = repliedMs ?? exchange.sentMs;
    if (rcode === RCODE.NXDOMAIN) {
      if (names.count(row, FOUND) + names.count(row, NODATA) === 0)
        names.increment(row, MISSING_FIRST);
      names.setCount(row, EXISTING_LAST, 0);
    } else if (rcode === RCODE.NOERROR) names.increment(row, EXISTING_LAST);
    if (rcode === RCODE.NOERROR) names.setCount(row, DENIED_NOW, 0);
    else this.#streak(at, DENIED_NOW, DENIED, DENIED_NOW_TIMES, DENIED_TIMES, 2);
    if (rcode !== RCODE.SERVFAIL) this.#answered(exchange.server.address, exchange.sentMs);
    const isThere = answers > 0 || (exchange.replyFlags & FLAG.TC) !== 0;
    if (rcode === RCODE.NOERROR && isThere) {
      names.setCount(row, ABSENT_NOW, 0);
      names.setTime(row, FIRST_FOUND, Math.min(this.firstFoundMs, at));
      names.setTime(row, LAST_FOUND, Math.max(this.lastFoundMs, at));
      if (isAddressType(this.type)) (this.sets ??= new AnswerSets()).add(exchange);
      if (this.addresses.length < ADDRESSES_MAX && names.count(row, FOUND) <= 2)
        this.#read(exchange);
    } else if (rcode === RCODE.NXDOMAIN || rcode === RCODE.NOERROR) {
      if (names.count(row, FOUND) > 0) this.#gone(at);
      names.setTime(row, FIRST_NEGATIVE, Math.min(this.firstNegativeMs, at));
      names.setTime(row, LAST_NEGATIVE, Math.max(this.lastNegativeMs, at));
      if (rcode === RCODE.NXDOMAIN) this.#ttl(at, ttl, server);
    } else if (rcode === RCODE.SERVFAIL && isAtOnce(exchange)) names.increment(row, QUICK_FAILURES);
  }

  #countServer(address: string, outcome: number, exchange: SeenExchange, ttl: number): void {
    const { names, servers } = this.#rows;
    let at = this.#rowOf(servers, SERVERS, address);
    if (at < 0) {
      if (names.count(this.#row, SERVER_COUNT) >= SERVERS_MAX) return;
      at = this.#listed(servers, SERVERS, SERVER_COUNT, address);
    }
    countIn(servers, at, LISTED, outcome);
    if (isLost(exchange)) return;
    const { rcode } = exchange;
    const fits = exchange.protocol === 'udp' || exchange.replyBytes <= UDP_BYTES;
    const isWhole = (exchange.replyFlags & FLAG.TC) === 0 && !isFailure(exchange);
    if (fits && isWhole) servers.increment(at, WHOLE);
    const repliedMs = exchange.repliedMs ?? exchange.sentMs;
    if (rcode === RCODE.NXDOMAIN) {
      servers.setTime(at, LAST_MISSING, Math.max(servers.time(at, LAST_MISSING), repliedMs));
      const untilMs = repliedMs + 1000 * Math.max(ttl, 0);
      servers.setTime(at, MISSING_UNTIL, Math.max(servers.time(at, MISSING_UNTIL), untilMs));
    } else if (rcode === RCODE.NOERROR && servers.time(at, FIRST_EXISTING) === 0)
      servers.setTime(at, FIRST_EXISTING, repliedMs);
  }

  #answered(address: string, sentMs: number): void {
    const { names, answered } = this.#rows;
    let at = this.#rowOf(answered, ANSWERED, address);
    if (at < 0) {
      if (names.count(this.#row, ANSWERED_COUNT) >= SERVERS_MAX) return;
      at = this.#listed(answered, ANSWERED, ANSWERED_COUNT, address);
    }
    answered.setTime(at, 0, Math.max(sentMs, answered.time(at, 0)));
  }

  /** The last row about a server in a list; -1 if there is none. */
  #rowOf(rows: NumberRows, list: number, address: string): number {
    return rowOf(this.#rows, rows, this.#rows.names.count(this.#row, list), address);
  }

  /** Adds a row at the front of a list. @returns its number */
  #listed(rows: NumberRows, list: number, length: number, address: string): number {
    const { names } = this.#rows;
    const made = rows.add();
    rows.setCount(made, NEXT, names.count(this.#row, list));
    rows.setCount(made, SERVER, this.#rows.numberOf(address));
    names.setCount(this.#row, list, made + 1);
    names.increment(this.#row, length);
    return made;
  }

  /**
   * Adds one to the current streak, which becomes the longest one if none was longer.
   * @param times that are stored for a streak
   */
  #streak(
    atMs: number,
    now: number,
    longest: number,
    nowTimes: number,
    longestTimes: number,
    times: number,
  ): void {
    const { names } = this.#rows;
    const row = this.#row;
    const count = names.count(row, now) + 1;
    names.setCount(row, now, count);
    if (count === 1) names.setTime(row, nowTimes, atMs);
    const toMs = count === 1 ? atMs : Math.max(names.time(row, nowTimes + 1), atMs);
    names.setTime(row, nowTimes + 1, toMs);
    if (count < names.count(row, longest)) return;
    names.setCount(row, longest, count);
    for (let at = 0; at < times; at++)
      names.setTime(row, longestTimes + at, names.time(row, nowTimes + at));
  }

  #gone(atMs: number): void {
    const { names } = this.#rows;
    if (names.count(this.#row, ABSENT_NOW) === 0) {
      names.increment(this.#row, DEPARTURES);
      names.setTime(this.#row, ABSENT_NOW_TIMES + 2, this.lastFoundMs);
    }
    this.#streak(atMs, ABSENT_NOW, ABSENT, ABSENT_NOW_TIMES, ABSENT_TIMES, 3);
  }

  #read({ reply, type }: SeenExchange): void {
    if (!isAddressType(type)) return;
    try {
      const found = new Set(this.addresses);
      for (const record of readMessage(reply!).answer)
        if (record.type === type && found.size < ADDRESSES_MAX)
          found.add(printData(record.type, record.data));
      this.addresses = [...found];
    } catch (error) {
      if (!(error instanceof ReadError)) throw error;
    }
  }

  #ttl(atMs: number, ttl: number, server: string): void {
    if (ttl < 0) return;
    const { names, ttls } = this.#rows;
    names.setCount(this.#row, LONGEST_TTL, Math.max(this.longestTtl, ttl));
    if (this.negativeTtlCount >= TTLS_MAX) return;
    // Several caches, each with its own TTL, may alternate behind the server's address.
    const number = this.#rows.knownNumberOf(server);
    for (let at = names.count(this.#row, TTLS); at > 0; at = ttls.count(at - 1, NEXT))
      if (
        ttls.count(at - 1, SERVER) === number &&
        ttls.count(at - 1, LISTED) === ttl &&
        atMs - ttls.time(at - 1, 0) < SAME_TTL_MS
      )
        return;
    const made = this.#listed(ttls, TTLS, TTL_COUNT, server);
    ttls.setCount(made, LISTED, ttl);
    ttls.setTime(made, 0, atMs);
  }
}

/** The results for one name by server, read from the rows on demand. */
export class ServerOutcomes implements Iterable<readonly [server: string, Outcomes]> {
  readonly #rows: NameRows;
  /** The last row, counted from 1. */
  readonly #last: number;

  constructor(rows: NameRows, last: number) {
    this.#rows = rows;
    this.#last = last;
  }

  get size(): number {
    let size = 0;
    for (let at = this.#last; at > 0; at = this.#rows.servers.count(at - 1, NEXT)) size++;
    return size;
  }

  has(server: string): boolean {
    return this.#find(server) >= 0;
  }

  get(server: string): Outcomes | undefined {
    const at = this.#find(server);
    return at < 0 ? undefined : outcomesIn(this.#rows.servers, at, LISTED);
  }

  /** In the order in which they were first queried. */
  [Symbol.iterator](): Iterator<readonly [server: string, Outcomes]> {
    const { servers } = this.#rows;
    const found: (readonly [string, Outcomes])[] = [];
    for (let at = this.#last; at > 0; at = servers.count(at - 1, NEXT))
      found.push([
        this.#rows.addressOf(servers.count(at - 1, SERVER)),
        outcomesIn(servers, at - 1, LISTED),
      ] as const);
    return found.toReversed()[Symbol.iterator]();
  }

  #find(server: string): number {
    return rowOf(this.#rows, this.#rows.servers, this.#last, server);
  }
}

/**
 * The first row about a server in the list that begins with the row `first`; -1 if there is none.
 * `first` is counted from 1, and is 0 for an empty list.
 */
function rowOf(all: NameRows, rows: NumberRows, first: number, address: string): number {
  // A server without a number is not in any list. It gets a number only with its first entry,
  // because a capture may contain any number of addresses.
  const number = all.knownNumberOf(address);
  if (number < 0) return -1;
  let at = first;
  while (at > 0 && rows.count(at - 1, SERVER) !== number) at = rows.count(at - 1, NEXT);
  return at - 1;
}

function countIn(rows: NumberRows, row: number, from: number, outcome: number): void {
  rows.increment(row, from);
  rows.increment(row, from + outcome);
}

function outcomesIn(rows: NumberRows, row: number, from: number): Outcomes {
  return {
    asked: rows.count(row, from),
    lost: rows.count(row, from + 1),
    found: rows.count(row, from + 2),
    nodata: rows.count(row, from + 3),
    nxdomain: rows.count(row, from + 4),
    servfail: rows.count(row, from + 5),
    refused: rows.count(row, from + 6),
    error: rows.count(row, from + 7),
  };
}

function isAddressType(type: number): boolean {
  return type === TYPE.A || type === TYPE.AAAA;
}

const records = new Records();

/**
 * The TTL of a negative answer’s SOA record, seconds; -1 if it has none that can be read.
 */
function negativeTtlOf(reply: Uint8Array): number {
  for (records.over(reply); records.next();)
    if (records.section === SECTION.authority && records.type === TYPE.SOA)
      return records.writtenTtl;
  return -1;
}
