/** One name and type: who answered what, when, and with which addresses. */
import { FLAG, RCODE, TYPE } from '../../wire/iana.ts';
import { readMessage } from '../../wire/message.ts';
import { printData } from '../../wire/print.ts';
import { ReadError } from '../../wire/reader.ts';
import { Records } from '../../wire/records.ts';
import { SECTION } from '../../wire/writer.ts';
import { bytesOf, isLost, latencyOf, type SeenExchange } from '../exchanges/seen-exchange.ts';
import { countOutcome, noOutcomes, type Outcomes } from './outcomes.ts';

const SERVERS_MAX = 8;
const ADDRESSES_MAX = 4;
const TTLS_MAX = 16;
/** The same TTL again says nothing for so long, milliseconds: a busy capture would show but the first moment. */
const SAME_TTL_MS = 1000;
/** A failure that comes so soon was not asked of anybody else. */
const CACHED_MS = 1.5;

/** A negative answer's TTL: when it came, seconds, and from whom. */
export interface NegativeTtl {
  readonly ms: number;
  readonly ttl: number;
  readonly server: string;
}

/** Errors in a row: NXDOMAIN, SERVFAIL, REFUSED. */
export interface Denial {
  readonly fromMs: number;
  toMs: number;
  count: number;
}

/** Negative answers in a row, after the name had been found. */
export interface Absence {
  readonly fromMs: number;
  toMs: number;
  count: number;
  /** The last time before it that the name was found. */
  readonly foundMs: number;
}

// Most names have neither: what is empty is shared.
const none: ReadonlySet<string> = new Set();
const noNumbers: number[] = [];
const noServers: string[] = [];

/** What is counted of one name and type. */
export class NameView {
  readonly name: string;
  readonly type: number;
  readonly outcomes: Outcomes = noOutcomes();
  /** How often the socket that asks is another than the one before. */
  sockets: number = 0;
  /** By server; of those behind a service, where they can be seen. */
  readonly servers: Map<string, Outcomes> = new Map();
  /** By the address that was asked: when the last query was sent that was answered, and not with a failure; milliseconds since 1970. */
  readonly answeredMs: Map<string, number> = new Map();
  /** Of the first answers. */
  addresses: ReadonlySet<string> = none;
  firstFoundMs: number = Infinity;
  lastFoundMs: number = -Infinity;
  firstNegativeMs: number = Infinity;
  lastNegativeMs: number = -Infinity;
  /** The longest time for which the name was gone; null: it never was. */
  absence: Absence | null = null;
  /** Bytes of the longest reply that anybody got, or that was seen on its way; of a truncated one as many as fit into no packet. */
  longest: number = 0;
  /** SERVFAIL that came from a cache, by the look of it. */
  quickFailures: number = 0;

  /** The longest row of errors; null: there was none. */
  denial: Denial | null = null;
  #denied: Denial | null = null;
  #absent: Absence | null = null;
  #client = '';
  #port = 0;
  // Many names have sixteen of them: beside each other they take a third of what as many objects do.
  #ttlTimes = noNumbers;
  #ttls = noNumbers;
  #ttlServers = noServers;

  constructor(name: string, type: number) {
    this.name = name;
    this.type = type;
  }

  /** TTLs of negative answers, in the order in which they came: the first ones. */
  get negativeTtls(): readonly NegativeTtl[] {
    return this.#ttls.map((ttl, at) => ({
      ms: this.#ttlTimes[at]!,
      ttl,
      server: this.#ttlServers[at]!,
    }));
  }

  add(exchange: SeenExchange): void {
    countOutcome(this.outcomes, exchange);
    const { client } = exchange;
    if (client.port !== this.#port || client.address !== this.#client) this.sockets++;
    this.#port = client.port;
    this.#client = client.address;
    const server = exchange.hops.at(-1)?.server.address ?? exchange.server.address;
    let own = this.servers.get(server);
    if (own === undefined && this.servers.size < SERVERS_MAX) {
      own = noOutcomes();
      this.servers.set(server, own);
    }
    if (own !== undefined) countOutcome(own, exchange);
    this.longest = Math.max(this.longest, bytesOf(exchange));
    if (isLost(exchange)) return;
    const { repliedMs, rcode, answers } = exchange;
    const at = repliedMs ?? exchange.sentMs;
    if (rcode === RCODE.NOERROR) this.#denied = null;
    else this.#denies(at);
    const { address } = exchange.server;
    if (
      rcode !== RCODE.SERVFAIL &&
      (this.answeredMs.size < SERVERS_MAX || this.answeredMs.has(address))
    )
      this.answeredMs.set(address, Math.max(exchange.sentMs, this.answeredMs.get(address) ?? 0));
    const isThere = answers > 0 || (exchange.replyFlags & FLAG.TC) !== 0;
    if (rcode === RCODE.NOERROR && isThere) {
      this.#absent = null;
      this.firstFoundMs = Math.min(this.firstFoundMs, at);
      this.lastFoundMs = Math.max(this.lastFoundMs, at);
      if (this.addresses.size < ADDRESSES_MAX && this.outcomes.found <= 2) this.#read(exchange);
    } else if (rcode === RCODE.NXDOMAIN || rcode === RCODE.NOERROR) {
      if (this.outcomes.found > 0) this.#gone(at);
      this.firstNegativeMs = Math.min(this.firstNegativeMs, at);
      this.lastNegativeMs = Math.max(this.lastNegativeMs, at);
      if (rcode === RCODE.NXDOMAIN && this.#ttls.length < TTLS_MAX) this.#ttl(exchange, server);
    } else if (rcode === RCODE.SERVFAIL && (latencyOf(exchange) ?? Infinity) < CACHED_MS)
      this.quickFailures++;
  }

  #denies(atMs: number): void {
    const now = (this.#denied ??= { fromMs: atMs, toMs: atMs, count: 0 });
    now.toMs = Math.max(now.toMs, atMs);
    now.count++;
    if (this.denial === null || now.count >= this.denial.count) this.denial = now;
  }

  #gone(atMs: number): void {
    const now = (this.#absent ??= {
      ...{ fromMs: atMs, toMs: atMs, count: 0, foundMs: this.lastFoundMs },
    });
    now.toMs = Math.max(now.toMs, atMs);
    now.count++;
    if (this.absence === null || now.count >= this.absence.count) this.absence = now;
  }

  #read({ reply, type }: SeenExchange): void {
    if (type !== TYPE.A && type !== TYPE.AAAA) return;
    try {
      for (const record of readMessage(reply!).answer)
        if (record.type === type && this.addresses.size < ADDRESSES_MAX)
          this.addresses = new Set([...this.addresses, printData(record.type, record.data)]);
    } catch (error) {
      if (!(error instanceof ReadError)) throw error;
    }
  }

  #ttl({ reply, repliedMs }: SeenExchange, server: string): void {
    const ttl = negativeTtlOf(reply!);
    if (ttl < 0) return;
    const before = this.#ttlServers.lastIndexOf(server);
    if (this.#ttls[before] === ttl && repliedMs! - this.#ttlTimes[before]! < SAME_TTL_MS) return;
    this.#ttlTimes = [...this.#ttlTimes, repliedMs!];
    this.#ttls = [...this.#ttls, ttl];
    this.#ttlServers = [...this.#ttlServers, server];
  }
}

const records = new Records();

/** The TTL of the SOA record with which a negative answer comes, seconds; -1: it has none that can be read. */
function negativeTtlOf(reply: Uint8Array): number {
  for (records.over(reply); records.next();)
    if (records.section === SECTION.authority && records.type === TYPE.SOA)
      return records.writtenTtl;
  return -1;
}
