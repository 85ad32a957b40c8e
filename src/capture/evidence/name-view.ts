/** One name and type: who answered what, when, and with which addresses. */
import { RCODE, TYPE } from '../../wire/iana.ts';
import { readMessage } from '../../wire/message.ts';
import { printData } from '../../wire/print.ts';
import { ReadError } from '../../wire/reader.ts';
import { Records } from '../../wire/records.ts';
import { SECTION } from '../../wire/writer.ts';
import { isLost, latencyOf, type SeenExchange } from '../exchanges/seen-exchange.ts';
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
  /** Of the first answers. */
  addresses: ReadonlySet<string> = none;
  firstFoundMs: number = Infinity;
  lastFoundMs: number = -Infinity;
  firstNegativeMs: number = Infinity;
  lastNegativeMs: number = -Infinity;
  /** SERVFAIL that came from a cache, by the look of it. */
  quickFailures: number = 0;

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
    if (isLost(exchange)) return;
    const { repliedMs, rcode, answers } = exchange;
    const at = repliedMs ?? exchange.sentMs;
    if (rcode === RCODE.NOERROR && answers > 0) {
      this.firstFoundMs = Math.min(this.firstFoundMs, at);
      this.lastFoundMs = Math.max(this.lastFoundMs, at);
      if (this.addresses.size < ADDRESSES_MAX && this.outcomes.found <= 2) this.#read(exchange);
    } else if (rcode === RCODE.NXDOMAIN || rcode === RCODE.NOERROR) {
      this.firstNegativeMs = Math.min(this.firstNegativeMs, at);
      this.lastNegativeMs = Math.max(this.lastNegativeMs, at);
      if (rcode === RCODE.NXDOMAIN && this.#ttls.length < TTLS_MAX) this.#ttl(exchange, server);
    } else if (rcode === RCODE.SERVFAIL && (latencyOf(exchange) ?? Infinity) < CACHED_MS)
      this.quickFailures++;
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
