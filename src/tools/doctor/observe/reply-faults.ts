/**
 * Replies that arrive and are of no use: how many of each kind, from which server, for which names,
 * and how many of them their clients asked for again. Beside them, what Extended DNS Errors say.
 */
import { EDE, RCODE } from '../../../server/wire/iana.ts';
import { CopiedBytes } from '../../capture/pair/copied-bytes.ts';
import { goRepeatMs } from '../../capture/pair/go-repeat.ts';
import { type SeenExchange, finalServer } from '../../capture/pair/seen-exchange.ts';
import { BoundedMap } from './bounded-map.ts';
import { Delegations } from './delegations.ts';
import { replyShape, zoneIn, type ReplyFault, type ReplyShape } from './reply-shape.ts';
import { ZoneCopies } from './zone-copies.ts';
import { SAME_QUERY_MS } from '../thresholds/evidence.ts';

const NAMES_MAX = 2000;
const SERVERS_MAX = 200;
const CLIENTS_MAX = 1000;
const SAMPLES_MAX = 200;
const REASONS_MAX = 200;
/** The domain of the primary server in the SOA record of the root zone. */
const ROOT_SERVERS = '.root-servers.net.';
/** Replies that may be asked for again; with more, the oldest are forgotten. */
const WAITING_MAX = 5000;

export interface FaultyReplies {
  count: number;
  /** Of these, those that the same client asked for again. */
  again: number;
  firstMs: number;
  lastMs: number;
  readonly servers: BoundedMap<string, Count>;
  readonly clients: BoundedMap<string, Count>;
  /** By `type name`. */
  readonly names: BoundedMap<string, FaultyName>;
  readonly samples: SeenExchange[];
}

export interface Count {
  readonly key: string;
  count: number;
}

export interface FaultyName extends Count {
  readonly name: string;
  readonly type: number;
  /** The target of the name's aliases; empty: it has none. */
  target: string;
}

export interface StatedReason extends FaultyReplies {
  readonly code: number;
  text: string;
  /** `early` if a text says that signatures are not yet valid. Null if no text mentions their time. */
  untimely: 'early' | 'expired' | null;
  /** Of these, those with an error, or with NXDOMAIN. */
  failed: number;
}

/** Collects what `replyShape` finds. */
export class ReplyFaults {
  readonly kinds: Map<ReplyFault, FaultyReplies> = new Map();
  /** By info code. */
  readonly reasons: BoundedMap<number, StatedReason> = new BoundedMap(REASONS_MAX);
  /** By `type name`: where the aliases in SERVFAIL replies lead. */
  readonly failingTargets: BoundedMap<string, FaultyName> = new BoundedMap(NAMES_MAX);
  /** By name: the owner and the primary server of the SOA record with which it was denied. */
  readonly zones: BoundedMap<string, Zone> = new BoundedMap(NAMES_MAX);
  /** By `server name`: denials whose SOA record is that of the root. */
  readonly rootDenials: BoundedMap<string, RootDenial> = new BoundedMap(NAMES_MAX);
  readonly copies: ZoneCopies = new ZoneCopies();
  readonly delegations: Delegations = new Delegations();
  /** Replies that were read to their end. */
  read: number = 0;
  readonly #kept = new CopiedBytes();
  /** By client, type and name: faulty replies that were not asked for again yet. */
  readonly #waiting = new Map<string, Waiting>();

  add(exchange: SeenExchange): void {
    if (this.#waiting.size > 0) this.#again(exchange);
    const shape = replyShape(exchange);
    if (shape === null) return;
    this.read++;
    this.delegations.add(exchange);
    const { fault, reason, reasonText, target } = shape;
    if (shape.soaOwnerAt > 0 && exchange.answers === 0) {
      this.#zone(exchange, shape);
      this.copies.add(exchange, shape);
    }
    if (reason >= 0) {
      const made = this.reasons.at(reason, newReason);
      if (made !== null) {
        if (reasonText.length > made.text.length) {
          made.text = reasonText;
          made.untimely = untimely(reason, reasonText) ?? made.untimely;
        }
        if (exchange.rcode !== RCODE.NOERROR) made.failed++;
        this.#count(made, exchange, target);
      }
    }
    if (target !== '' && exchange.rcode === RCODE.SERVFAIL)
      countName(this.failingTargets, exchange, target);
    if (fault === null) return;
    let kind = this.kinds.get(fault);
    if (kind === undefined) this.kinds.set(fault, (kind = noReplies()));
    this.#count(kind, exchange, target);
    if (this.#waiting.size >= WAITING_MAX) this.#waiting.clear();
    const waiting: Waiting = { of: kind, sentMs: exchange.sentMs };
    this.#waiting.set(questionOf(exchange), waiting);
    this.#waiting.set(nameOf(exchange), waiting);
  }

  clear(): void {
    this.#waiting.clear();
    this.zones.clear();
    this.copies.clear();
    this.rootDenials.clear();
    for (const each of [...this.kinds.values(), ...this.reasons.list]) each.samples.length = 0;
  }

  #zone({ name, reply, server: { address: server } }: SeenExchange, shape: ReplyShape): void {
    // The root is one byte.
    const isRoot = reply![shape.soaOwnerAt] === 0;
    if (isRoot && zoneIn(reply!, shape)?.primary.endsWith(ROOT_SERVERS) === true) {
      const denial = this.rootDenials.at(`${server} ${name}`, () => ({ server, name, count: 0 }));
      if (denial !== null) denial.count++;
    }
    if (this.zones.get(name) !== undefined || this.zones.size >= NAMES_MAX) return;
    const found = zoneIn(reply!, shape);
    if (found !== null) this.zones.at(name, () => ({ name, ...found }));
  }

  #again(exchange: SeenExchange): void {
    const key = questionOf(exchange);
    const same = this.#waiting.get(key);
    const sinceMs = exchange.sentMs - (same?.sentMs ?? -Infinity);
    if (same !== undefined && sinceMs >= 0 && sinceMs < SAME_QUERY_MS) {
      same.of.again++;
      this.#waiting.delete(key);
      return;
    }
    const before = this.#waiting.get(nameOf(exchange));
    const afterMs = exchange.sentMs - (before?.sentMs ?? -Infinity);
    if (before === undefined || afterMs < goRepeatMs.likely.from || afterMs > goRepeatMs.likely.to)
      return;
    before.of.again++;
    this.#waiting.delete(nameOf(exchange));
  }

  #count(into: FaultyReplies, exchange: SeenExchange, target: string): void {
    into.count++;
    into.firstMs = Math.min(into.firstMs, exchange.sentMs);
    into.lastMs = Math.max(into.lastMs, exchange.sentMs);
    increment(into.servers, finalServer(exchange).address);
    increment(into.clients, exchange.client.address);
    countName(into.names, exchange, target);
    if (into.samples.length >= SAMPLES_MAX) return;
    this.#kept.keep(exchange);
    into.samples.push(exchange);
  }
}

interface Waiting {
  readonly of: FaultyReplies;
  readonly sentMs: number;
}

/** Denials of one name by one server, in the name of the root. */
export interface RootDenial {
  readonly server: string;
  readonly name: string;
  count: number;
}

/** The zone that denies a name or a record. */
export interface Zone {
  readonly name: string;
  /** The owner of the SOA record, and the primary name server in it. */
  readonly zone: string;
  readonly primary: string;
}

const newCount = (key: string): Count => ({ key, count: 0 });

function increment(map: BoundedMap<string, Count>, key: string): void {
  const entry = map.at(key, newCount);
  if (entry !== null) entry.count++;
}

function countName(
  map: BoundedMap<string, FaultyName>,
  { name, type }: SeenExchange,
  target: string,
): void {
  const entry = map.at(`${type} ${name}`, (key) => ({ key, count: 0, name, type, target }));
  if (entry === null) return;
  entry.count++;
  if (target !== '') entry.target = target;
}

function noReplies(): FaultyReplies {
  return {
    ...{ count: 0, again: 0, firstMs: Infinity, lastMs: -Infinity, samples: [] },
    servers: new BoundedMap(SERVERS_MAX),
    clients: new BoundedMap(CLIENTS_MAX),
    names: new BoundedMap(NAMES_MAX),
  };
}

function newReason(code: number): StatedReason {
  return { ...noReplies(), code, text: '', untimely: untimely(code, ''), failed: 0 };
}

/** Detects that a validating resolver calls signatures early or expired (texts of Unbound, BIND, Knot). */
function untimely(code: number, text: string): StatedReason['untimely'] {
  if (code === EDE.SIGNATURE_NOT_YET_VALID || /before inception|not yet valid/i.test(text))
    return 'early';
  return code === EDE.SIGNATURE_EXPIRED || /signature (?:has )?expired/i.test(text)
    ? 'expired'
    : null;
}

function nameOf({ client, type, name }: SeenExchange): string {
  return `${client.address} ${type} ${name}`;
}

/** A repeat has the id of its query, whatever its port. */
function questionOf({ client, type, name, id }: SeenExchange): string {
  return `${client.address} ${id} ${type} ${name}`;
}
