/**
 * The replies for one name and type, with servers, times and addresses. All names share the rows
 * that hold the counts.
 */
import { FLAG, isAddressType, RCODE, TYPE } from '../../../server/wire/iana.ts';
import { printData } from '../../../server/wire/print.ts';
import { Records } from '../../../server/wire/records.ts';
import { SECTION } from '../../../server/wire/writer.ts';
import {
  type SeenExchange,
  UDP_BYTES,
  answerRecords,
  bytesOf,
  finalServer,
  isLost,
  latencyOf,
} from '../../capture/pair/seen-exchange.ts';
import { AnswerSets } from './answer-sets.ts';
import { NumberRows } from './number-rows.ts';
import { isFailure, outcomeOf, outcomeOrder, type Outcomes } from './outcomes.ts';
import { AddressNumbers, LISTED, ServerRows } from './server-rows.ts';
import { CACHED_MS, SAME_TTL_MS } from '../thresholds/answers.ts';

const SERVERS_MAX = 8;
const ADDRESSES_MAX = 4;
const TTLS_MAX = 16;

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
const PORT = SOCKETS + 3;
/** Lists of `ServerRows`. */
const SERVERS = SOCKETS + 4;
const ANSWERED = SOCKETS + 5;
const TTLS = SOCKETS + 6;
/** The number of times that the name was gone after it had been found. */
const DEPARTURES = SOCKETS + 7;
/**
 * NXDOMAIN replies before the first one that shows that the name exists, and such replies since the
 * last NXDOMAIN.
 */
const MISSING_FIRST = SOCKETS + 8;
const EXISTING_LAST = SOCKETS + 9;
/** The highest TTL of an NXDOMAIN reply, seconds. */
const LONGEST_TTL = SOCKETS + 10;
const TTL_COUNT = SOCKETS + 11;
const STREAKS = SOCKETS + 12;
const COUNTS = STREAKS + 4;

const FIRST_FOUND = 0;
const LAST_FOUND = 1;
const FIRST_NEGATIVE = 2;
const LAST_NEGATIVE = 3;
const TIMES = 14;

/** Consecutive answers of one kind: the places of the current streak and of the longest one. */
interface Streak {
  /** The number of answers; 0 if there is none. */
  readonly now: number;
  readonly longest: number;
  /** The first of its times: start, end, and for absence when the name was last found. */
  readonly nowTimes: number;
  readonly longestTimes: number;
  /** The number of times that are stored. */
  readonly times: number;
}

const DENIED: Streak = {
  now: STREAKS,
  longest: STREAKS + 1,
  nowTimes: 4,
  longestTimes: 6,
  times: 2,
};
const ABSENT: Streak = {
  now: STREAKS + 2,
  longest: STREAKS + 3,
  nowTimes: 8,
  longestTimes: 11,
  times: 3,
};

/** In the row of a server, behind its outcomes: complete replies that UDP can carry. */
const WHOLE = LISTED + outcomeOrder.length;

/**
 * Times in a server’s row: the first reply with the name, the last denial, and the end of that
 * denial’s TTL; 0 if there is none.
 */
const FIRST_EXISTING = 0;
const LAST_MISSING = 1;
const MISSING_UNTIL = 2;

/** Storage that all names share. */
export class NameRows {
  readonly numbers: AddressNumbers = new AddressNumbers();
  readonly names: NumberRows = new NumberRows(COUNTS, TIMES);
  readonly servers: ServerRows = new ServerRows(this.numbers, outcomeOrder.length + 1, 3);
  readonly answered: ServerRows = new ServerRows(this.numbers, 0, 1);
  readonly ttls: ServerRows = new ServerRows(this.numbers, 1, 1);
}

const none: readonly string[] = [];

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
    return this.#count(SOCKETS);
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
    return this.#count(LONGEST);
  }

  /** Records the size of its replies elsewhere, bytes. */
  knowLength(bytes: number): void {
    const { names } = this.#rows;
    names.setCount(this.#row, LONGEST, Math.max(this.longest, bytes));
  }

  /** SERVFAIL replies that appear to come from a cache. */
  get quickFailures(): number {
    return this.#count(QUICK_FAILURES);
  }

  get firstFoundMs(): number {
    return this.#time(FIRST_FOUND);
  }

  get lastFoundMs(): number {
    return this.#time(LAST_FOUND);
  }

  get firstNegativeMs(): number {
    return this.#time(FIRST_NEGATIVE);
  }

  get lastNegativeMs(): number {
    return this.#time(LAST_NEGATIVE);
  }

  /** Complete replies that came over UDP or are small enough for it, of this server or one behind a service. */
  wholeBy(server: string): number {
    const { servers } = this.#rows;
    return servers.count(servers.find(this.#count(SERVERS), server), WHOLE);
  }

  /** Outcomes by server; by the servers behind a Service if they are visible. */
  get servers(): ReadonlyMap<string, Outcomes> {
    const { servers } = this.#rows;
    return new Map(
      servers
        .in(this.#count(SERVERS))
        .map((row) => [servers.serverOf(row), outcomesIn(servers, row, LISTED)] as const),
    );
  }

  /**
   * The times at which each server denied the name and had it; by the servers behind a Service if
   * they are visible.
   */
  get serverTimes(): readonly ServerTimes[] {
    const { servers } = this.#rows;
    return servers.in(this.#count(SERVERS)).map((row) => ({
      server: servers.serverOf(row),
      missingMs: servers.time(row, LAST_MISSING) || -Infinity,
      untilMs: servers.time(row, MISSING_UNTIL) || -Infinity,
      existsMs: servers.time(row, FIRST_EXISTING) || Infinity,
    }));
  }

  /** The number of denials before the first reply that shows that it exists. */
  get missingFirst(): number {
    return this.#count(MISSING_FIRST);
  }

  /** The number of replies since the last denial that show that it exists. */
  get existingLast(): number {
    return this.#count(EXISTING_LAST);
  }

  /** The highest TTL of its NXDOMAIN replies, seconds. */
  get longestTtl(): number {
    return this.#count(LONGEST_TTL);
  }

  /**
   * By queried address, the time of the last query that was answered without a failure,
   * milliseconds since 1970.
   */
  get answeredMs(): ReadonlyMap<string, number> {
    const { answered } = this.#rows;
    return new Map(
      answered
        .in(this.#count(ANSWERED))
        .map((row) => [answered.serverOf(row), answered.time(row, 0)] as const),
    );
  }

  /** The first TTLs of negative answers, in order of arrival. */
  get negativeTtls(): readonly NegativeTtl[] {
    const { ttls } = this.#rows;
    return ttls.in(this.#count(TTLS)).map((row) => ({
      ms: ttls.time(row, 0),
      ttl: ttls.count(row, LISTED),
      server: ttls.serverOf(row),
    }));
  }

  /** The longest run of errors; null if there was none. */
  get denial(): ErrorRun | null {
    const count = this.#count(DENIED.longest);
    if (count === 0) return null;
    const at = DENIED.longestTimes;
    return { fromMs: this.#time(at), toMs: this.#time(at + 1), count };
  }

  /** The longest time for which the name was gone; null if it never was. */
  get absence(): Absence | null {
    const count = this.#count(ABSENT.longest);
    if (count === 0) return null;
    const at = ABSENT.longestTimes;
    return { fromMs: this.#time(at), toMs: this.#time(at + 1), foundMs: this.#time(at + 2), count };
  }

  /** The number of times that the name disappeared after it had been found. */
  get departures(): number {
    return this.#count(DEPARTURES);
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
    const server = finalServer(exchange).address;
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
    if (rcode === RCODE.NOERROR) names.setCount(row, DENIED.now, 0);
    else this.#streak(at, DENIED);
    if (rcode !== RCODE.SERVFAIL) this.#answered(exchange.server.address, exchange.sentMs);
    const isThere = answers > 0 || (exchange.replyFlags & FLAG.TC) !== 0;
    if (rcode === RCODE.NOERROR && isThere) {
      names.setCount(row, ABSENT.now, 0);
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

  #count(at: number): number {
    return this.#rows.names.count(this.#row, at);
  }

  #time(at: number): number {
    return this.#rows.names.time(this.#row, at);
  }

  /** The row about a server in one of the lists, made on first use; 0 if the list is full. */
  #rowOf(rows: ServerRows, list: number, server: string): number {
    const last = this.#count(list);
    const known = rows.find(last, server);
    if (known > 0 || rows.lengthOf(last) >= SERVERS_MAX) return known;
    const made = rows.append(last, server);
    this.#rows.names.setCount(this.#row, list, made);
    return made;
  }

  #countServer(address: string, outcome: number, exchange: SeenExchange, ttl: number): void {
    const { servers } = this.#rows;
    const at = this.#rowOf(servers, SERVERS, address);
    if (at === 0) return;
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
    const { answered } = this.#rows;
    const at = this.#rowOf(answered, ANSWERED, address);
    if (at > 0) answered.setTime(at, 0, Math.max(sentMs, answered.time(at, 0)));
  }

  /** Adds one to the current streak, which becomes the longest one if none was longer. */
  #streak(atMs: number, { now, longest, nowTimes, longestTimes, times }: Streak): void {
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
    if (this.#count(ABSENT.now) === 0) {
      names.increment(this.#row, DEPARTURES);
      names.setTime(this.#row, ABSENT.nowTimes + 2, this.lastFoundMs);
    }
    this.#streak(atMs, ABSENT);
  }

  #read(exchange: SeenExchange): void {
    if (!isAddressType(this.type)) return;
    const found = new Set(this.addresses);
    for (const { type, data } of answerRecords(exchange))
      if (type === this.type && found.size < ADDRESSES_MAX) found.add(printData(type, data));
    this.addresses = [...found];
  }

  #ttl(atMs: number, ttl: number, server: string): void {
    if (ttl < 0) return;
    const { names, ttls } = this.#rows;
    names.setCount(this.#row, LONGEST_TTL, Math.max(this.longestTtl, ttl));
    if (this.#count(TTL_COUNT) >= TTLS_MAX) return;
    const last = this.#count(TTLS);
    for (let row = last; row > 0; row = ttls.before(row)) {
      const isSoon = atMs - ttls.time(row, 0) < SAME_TTL_MS;
      // Several caches, each with its own TTL, may alternate behind the server's address.
      if (isSoon && ttls.count(row, LISTED) === ttl && ttls.serverOf(row) === server) return;
    }
    names.increment(this.#row, TTL_COUNT);
    const made = ttls.append(last, server);
    names.setCount(this.#row, TTLS, made);
    ttls.setCount(made, LISTED, ttl);
    ttls.setTime(made, 0, atMs);
  }
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
