/**
 * Exchanges become lookups: one call of an application, with both address families, all names of
 * the search path and all repeats. The wire does not say which exchanges belong together; names,
 * ports and times nearly always do.
 */
import { goRepeatMs } from './go-repeat.ts';
import { FIXED_HASH_START, nextFixedHash } from '../../../server/base/fixed-hash.ts';
import { limit, type Limit } from '../../../server/base/limits.ts';
import { FLAG, RCODE, TYPE } from '../../../server/wire/iana.ts';
import { CopiedBytes } from './copied-bytes.ts';
import { isCut } from './message-head.ts';
import type { SearchDomains } from './search-walk.ts';
import { haveSameName, isLost, type SeenExchange, type SeenLookup } from './seen-exchange.ts';

/**
 * Clients whose lookups are followed at a time; the one that was silent for longest is let go
 * first.
 */
const clientLimit: Limit = limit({ default: 50_000, min: 16, max: 10_000_000 });
/**
 * Lookups of one client that may be under way; more of one address are several programs, and the
 * oldest is closed.
 */
const UNDER_WAY_MAX = 256;
/** Both families of a name leave together: within this time, milliseconds. */
const TOGETHER_MS = 30;
/** What follows a reply comes at once. */
const NEXT_MS = 250;
/** No client waits for longer between two tries. */
const PAUSE_MS = 11_000;
/** The shortest time after which a client repeats a query that got no reply. */
const PATIENCE_MS = 300;
/**
 * Queries of one lookup: more than any client sends, with every search domain, server and attempt.
 */
const EXCHANGES_MAX = 512;
/**
 * Exchanges of all lookups that are under way; with more, the clients that were silent for longest
 * are let go first.
 */
const FOLLOWED_MAX = 80_000;

interface Growing {
  readonly client: string;
  /** `firstLabelHash` of its names. */
  readonly label: number;
  readonly exchanges: SeenExchange[];
  readonly candidates: string[];
  /** Exchanges that are not over. */
  open: number;
  lastMs: number;
  stem: string | null;
  /** Whether the name that is asked for by now was answered with records: that ends a walk. */
  found: boolean;
  closed: boolean;
}

/** Groups exchanges as they begin and end. */
export class LookupGrouping {
  readonly #domains: SearchDomains;
  readonly #clients = new Map<string, Growing[]>();
  readonly #give: (lookup: SeenLookup) => void;
  readonly #most: number;
  /** Bytes of the lookups that last. */
  readonly #lasting = new CopiedBytes();
  readonly #families = new OtherFamily();
  /** Exchanges of those that are not closed. */
  #followed = 0;
  #sweptMs = -Infinity;

  /**
   * @param give gets each lookup when nothing can be added to it any more
   * @param domains learns those of the walks
   */
  constructor(
    give: (lookup: SeenLookup) => void,
    domains: SearchDomains,
    most: number = clientLimit.default,
  ) {
    this.#give = give;
    this.#domains = domains;
    this.#most = most;
  }

  begun(exchange: SeenExchange): void {
    const { address } = exchange.client;
    this.#sweep(exchange.sentMs);
    if (++this.#followed > FOLLOWED_MAX) this.#makeRoom();
    const growing = this.#clients.get(address);
    if (growing !== undefined) {
      // Insertion order is the order of use.
      this.#clients.delete(address);
      this.#clients.set(address, growing);
    }
    const label = firstLabelHash(exchange.name);
    const home =
      this.#families.homeOf(exchange) ??
      (growing === undefined ? null : this.#homeOf(exchange, label, growing));
    if (home === null) {
      const made: Growing = {
        client: address,
        label,
        exchanges: [exchange],
        candidates: [exchange.name],
        open: 1,
        lastMs: exchange.sentMs,
        stem: null,
        found: false,
        closed: false,
      };
      exchange.growing = made;
      this.#families.add(exchange, made);
      if (growing === undefined) {
        // Clients may be many, and most have one lookup at a time: a list that grows takes room for
        // a dozen.
        this.#clients.set(address, [made]);
        if (this.#clients.size > this.#most) this.#makeRoom();
        return;
      }
      growing.push(made);
      if (growing.length > UNDER_WAY_MAX) this.#close(growing.shift()!);
      return;
    }
    const isNext = !haveSameName(home.exchanges.at(-1)!, exchange);
    if (isNext) home.found = false;
    home.exchanges.push(exchange);
    home.open++;
    home.lastMs = exchange.sentMs;
    if (isNext && !home.candidates.includes(exchange.name)) home.candidates.push(exchange.name);
    exchange.growing = home;
    this.#families.add(exchange, home);
  }

  ended(exchange: SeenExchange): void {
    const home = exchange.growing as Growing | null;
    if (home === null) return;
    exchange.growing = null;
    home.open--;
    const isFound = exchange.answers > 0 && exchange.rcode === RCODE.NOERROR;
    if (isFound && haveSameName(home.exchanges.at(-1)!, exchange)) home.found = true;
    home.lastMs = Math.max(home.lastMs, exchange.repliedMs ?? exchange.sentMs);
    if (home.closed && home.open === 0) this.#finish(home);
  }

  /** Moves the time on where no query does, milliseconds since 1970. */
  advance(nowMs: number): void {
    this.#sweep(nowMs);
  }

  /** The capture is over. */
  end(): void {
    for (const growing of this.#clients.values()) for (const each of growing) this.#close(each);
    this.#clients.clear();
    this.#families.clear();
    this.#sweptMs = -Infinity;
  }

  /** The lookup that the exchange goes on with; null: it begins one. */
  #homeOf(exchange: SeenExchange, label: number, growing: readonly Growing[]): Growing | null {
    let found: Growing | null = null;
    const isStub = isCut(exchange.name) && !exchange.name.includes('.');
    for (let at = growing.length - 1; at >= 0; at--) {
      const each = growing[at]!;
      // What excludes most comes first: a busy client has hundreds of lookups under way, and each
      // query is held against all of them.
      const isLabel = each.label === label;
      if (!(isLabel || isStub) || each.exchanges.length >= EXCHANGES_MAX) continue;
      if (exchange.sentMs - each.lastMs > PAUSE_MS) continue;
      const last = each.exchanges.at(-1)!;
      // Of the first label there may be less than of that of the query before it in the segment.
      const isSame = haveSameName(last, exchange);
      if (!isLabel && !isSame) continue;
      if (!(isSame ? goesOn(each, exchange) : this.#walksOn(each, last, exchange))) continue;
      // Of several that fit, the one that used the same port.
      if (last.client.port === exchange.client.port) return each;
      found ??= each;
    }
    return found;
  }

  /** Whether the exchange asks for the next name of the search path. */
  #walksOn(each: Growing, last: SeenExchange, exchange: SeenExchange): boolean {
    if (each.found || each.exchanges.some((one) => haveSameName(one, exchange))) return false;
    const { sentMs } = exchange;
    // The next name is asked for when the one before is settled.
    let settled = true;
    for (const one of each.exchanges) {
      if (!haveSameName(one, last) || one.ending === 'answered') continue;
      if (one.ending === 'waiting' && sentMs - one.sentMs < PATIENCE_MS) return false;
      settled = false;
    }
    if (settled && sentMs - each.lastMs > NEXT_MS) return false;
    // Of two queries in one segment the capture may have the name of the first only.
    const { name } = isCut(last.name)
      ? each.exchanges.find((one) => haveSameName(one, last))!
      : last;
    if (isCut(name) || isCut(exchange.name)) return this.#domains.mayStep(name, exchange.name);
    const step = this.#domains.step(name, exchange.name);
    if (step === null || (each.stem !== null && step.stem !== each.stem)) return false;
    each.stem = step.stem;
    this.#domains.learn(step);
    return true;
  }

  /**
   * The clients that were silent for longest, several at once: each look for the first of a Map
   * passes what was deleted before it.
   */
  #makeRoom(): void {
    for (const [oldest, theirs] of this.#clients) {
      if (this.#clients.size <= this.#most * 0.95 && this.#followed <= FOLLOWED_MAX * 0.95) return;
      for (const each of theirs) this.#close(each);
      this.#clients.delete(oldest);
    }
  }

  #sweep(nowMs: number): void {
    if (nowMs - this.#sweptMs < 1000) return;
    this.#sweptMs = nowMs;
    // Its entries would be made anew each second.
    for (const growing of this.#clients.values()) {
      const { client } = growing[0]!;
      for (let at = 0; at < growing.length;) {
        const each = growing[at]!;
        if (nowMs - each.lastMs <= (each.open > 0 ? PAUSE_MS : 2 * NEXT_MS)) {
          // Where they are, the bytes of all that passed at that time would stay with them.
          if (each.open > 0) for (const one of each.exchanges) this.#lasting.keep(one);
          at++;
          continue;
        }
        if (at === growing.length - 1) growing.pop();
        else growing.splice(at, 1);
        this.#close(each);
      }
      if (growing.length === 0) this.#clients.delete(client);
    }
  }

  #close(each: Growing): void {
    if (each.closed) return;
    each.closed = true;
    this.#followed -= each.exchanges.length;
    if (each.open === 0) this.#finish(each);
  }

  #finish({ client, exchanges, candidates, stem }: Growing): void {
    let endMs = 0;
    for (const { sentMs, repliedMs } of exchanges) endMs = Math.max(endMs, repliedMs ?? sentMs);
    const first = exchanges[0]!;
    const name = stem === null ? first.name : stem.slice(0, -1);
    this.#give({ client, name, startMs: first.sentMs, endMs, exchanges, candidates });
  }
}

/** Questions that are remembered for a client's other address; with more, all are forgotten. */
const QUESTIONS_MAX = 4096;

/**
 * Lookups of a client with an IPv4 and an IPv6 address, which asks name servers of both families: a
 * question that the one does not answer goes on to the other with the same id.
 */
class OtherFamily {
  readonly #asked = new Map<string, { exchange: SeenExchange; home: Growing }>();
  /** Both were seen; until then there is nothing to remember. */
  #isWanted = false;
  #isV6: boolean | null = null;

  add(exchange: SeenExchange, home: Growing): void {
    const isV6 = exchange.client.address.includes(':');
    if (!this.#isWanted) {
      this.#isWanted = isV6 || this.#isV6 === true;
      this.#isV6 ??= isV6;
      if (!this.#isWanted) return;
    }
    if (this.#asked.size >= QUESTIONS_MAX) this.#asked.clear();
    for (const key of [questionOf(exchange), nameOf(exchange)])
      this.#asked.set(key, { exchange, home });
  }

  /** The lookup that the exchange goes on with; null: none of another family. */
  homeOf(exchange: SeenExchange): Growing | null {
    if (this.#asked.size === 0) return null;
    const [same, named] = [
      this.#asked.get(questionOf(exchange)),
      this.#asked.get(nameOf(exchange)),
    ];
    if (same !== undefined && isOfOther(same.exchange, exchange, 0, PAUSE_MS))
      return same.home.closed ? null : same.home;
    if (
      named !== undefined &&
      isOfOther(named.exchange, exchange, goRepeatMs.ofLookup.from, goRepeatMs.ofLookup.to)
    )
      return named.home.closed ? null : named.home;
    return null;
  }

  clear(): void {
    this.#asked.clear();
    this.#isWanted = false;
    this.#isV6 = null;
  }
}

/** Whether a question without an answer goes on from an address of the other family. */
function isOfOther(
  { client, ending, sentMs }: SeenExchange,
  exchange: SeenExchange,
  leastMs: number,
  mostMs: number,
): boolean {
  const isOther = client.address.includes(':') !== exchange.client.address.includes(':');
  const sinceMs = exchange.sentMs - sentMs;
  return isOther && ending !== 'answered' && sinceMs >= leastMs && sinceMs <= mostMs;
}

function nameOf({ type, name }: SeenExchange): string {
  return `${type} ${name}`;
}

function questionOf({ id, type, name }: SeenExchange): string {
  return `${id} ${type} ${name}`;
}

/** Of the first label, which all names of a walk have in common. */
function firstLabelHash(name: string): number {
  let hash = FIXED_HASH_START;
  for (let at = 0; at < name.length; at++) {
    const code = name.charCodeAt(at);
    if (code === 0x2e) break;
    hash = nextFixedHash(hash, code);
  }
  return hash;
}

/**
 * Whether the exchange asks for the same name in the same call: its other family, or the same once
 * more.
 */
function goesOn(each: Growing, exchange: SeenExchange): boolean {
  const { name, type, id, sentMs, protocol } = exchange;
  // Of a question that is cut nobody knows the type: its ids tell one family from the other.
  const cut = isCut(name);
  let isThird = false;
  let latest: SeenExchange | null = null;
  let other: SeenExchange | null = null;
  for (let at = each.exchanges.length - 1; at >= 0; at--) {
    const one = each.exchanges[at]!;
    if (!haveSameName(one, exchange)) break;
    if (cut ? one.id === id : one.type === type) latest ??= one;
    else {
      other ??= one;
      isThird ||= one.id !== other.id;
    }
    if (latest !== null && other !== null) break;
  }
  if (latest === null) {
    // The other family: at once, or (one after the other) when the first has been answered or given
    // up.
    if (other === null || !(cut || (isAddress(type) && isAddress(other.type)))) return false;
    if (cut && isThird) return !isDone(other) && sentMs - other.sentMs > PATIENCE_MS;
    if (sentMs - other.sentMs < TOGETHER_MS) return true;
    if (other.ending === 'answered') return sentMs - each.lastMs < NEXT_MS;
    return sentMs - other.sentMs > PATIENCE_MS;
  }
  // Once more: because it was truncated, refused, not answered, or asked of the next server.
  // (glibc asks both once more if one is truncated, before it has the reply to the other. All that
  // are known keep the id.)
  if (protocol === 'tcp' && latest.protocol === 'udp')
    if ((latest.replyFlags & FLAG.TC) !== 0 || id === latest.id) return true;
  if (latest.ending === 'answered') {
    if (latest.rcode !== RCODE.NOERROR && latest.rcode !== RCODE.NXDOMAIN) return true;
    // glibc repeats both when one was lost, or truncated; c-ares what it does not take the reply
    // of, from another port.
    if (id === latest.id) return true;
    return other !== null && !isDone(other) && sentMs - other.sentMs > PATIENCE_MS;
  }
  if (latest.server.address !== exchange.server.address) return true;
  return sentMs - latest.sentMs > PATIENCE_MS || latest.ending === 'retried';
}

/** Whether it was answered, as far as is known. */
function isDone(exchange: SeenExchange): boolean {
  return !isLost(exchange) && exchange.ending !== 'waiting';
}

function isAddress(type: number): boolean {
  return type === TYPE.A || type === TYPE.AAAA;
}
