/**
 * Groups exchanges into lookups. A lookup is one call by an application, including both address families, all search
 * path names and all retries. Packets do not say which exchanges belong together, but their names, ports and times
 * nearly always do.
 */
import { goRepeatMs } from './go-repeat.ts';
import { FIXED_HASH_START, nextFixedHash } from '../../../server/base/fixed-hash.ts';
import { limit, type Limit } from '../../../server/base/limits.ts';
import { FLAG, isAddressType, RCODE } from '../../../server/wire/iana.ts';
import { CopiedBytes } from './copied-bytes.ts';
import { isCut } from './message-head.ts';
import type { SearchDomains } from './search-walk.ts';
import { haveSameName, isLost, type SeenExchange, type SeenLookup } from './seen-exchange.ts';

/** The number of clients whose lookups are tracked. The one that has been silent for longest is dropped first. */
const clientLimit: Limit = limit({ default: 50_000, min: 16, max: 10_000_000 });
/**
 * Limit on open lookups per client. If there are more, several programs share the address, so the oldest lookup is
 * closed.
 */
const UNDER_WAY_MAX = 256;
/** Both families are queried for a name within this many milliseconds. */
const TOGETHER_MS = 30;
/** The next step follows a reply within this many milliseconds. */
const NEXT_MS = 250;
/**
 * The same for the next search domain after NXDOMAIN, in milliseconds, if the capture is far from the client. The reply
 * has to reach the client, and the next query has to come back.
 */
const NEXT_FAR_MS = 800;
/** A client's longest pause between two attempts, in milliseconds. */
const PAUSE_MS = 11_000;
/** The shortest time after which clients retry unanswered queries, in milliseconds. */
const PATIENCE_MS = 300;
/**
 * Limit on queries per lookup, which exceeds what any client sends for all its search domains, servers and attempts.
 */
const EXCHANGES_MAX = 512;
/**
 * Limit on exchanges in all open lookups. When it is reached, the clients that have been silent for longest are dropped
 * first.
 */
const FOLLOWED_MAX = 80_000;

interface Growing {
  readonly client: string;
  /** The `firstLabelHash` of its names. */
  readonly label: number;
  readonly exchanges: SeenExchange[];
  readonly candidates: string[];
  open: number;
  lastMs: number;
  stem: string | null;
  /** True if the current name was answered with records, which ends the search. */
  found: boolean;
  closed: boolean;
}

export class LookupGrouping {
  readonly #domains: SearchDomains;
  readonly #clients = new Map<string, Growing[]>();
  readonly #give: (lookup: SeenLookup) => void;
  readonly #most: number;
  readonly #lasting = new CopiedBytes();
  readonly #families = new OtherFamily();
  #followed = 0;
  #sweptMs = -Infinity;

  /**
   * @param give receives each lookup once it is complete
   * @param domains learns the domains that searches use
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
      // Insertion order reflects recent use.
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
        // Most clients have one lookup at a time, but a growing list would reserve room for a dozen.
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

  advance(nowMs: number): void {
    this.#sweep(nowMs);
  }

  end(): void {
    for (const growing of this.#clients.values()) for (const each of growing) this.#close(each);
    this.#clients.clear();
    this.#families.clear();
    this.#sweptMs = -Infinity;
  }

  /** The lookup that this exchange continues, or null if it starts one. */
  #homeOf(exchange: SeenExchange, label: number, growing: readonly Growing[]): Growing | null {
    let found: Growing | null = null;
    const isStub = isCut(exchange.name) && !exchange.name.includes('.');
    for (let at = growing.length - 1; at >= 0; at--) {
      const each = growing[at]!;
      // The most selective test comes first, because each query is compared with all open lookups, and a busy client
      // has hundreds.
      const isLabel = each.label === label;
      if (!(isLabel || isStub) || each.exchanges.length >= EXCHANGES_MAX) continue;
      if (exchange.sentMs - each.lastMs > PAUSE_MS) continue;
      const last = each.exchanges.at(-1)!;
      // The first label may be shorter than in the previous query of the same segment.
      const isSame = haveSameName(last, exchange);
      if (!isLabel && !isSame) continue;
      if (!(isSame ? goesOn(each, exchange) : this.#walksOn(each, last, exchange))) continue;
      // If several match, uses the one with the same port.
      if (last.client.port === exchange.client.port) return each;
      found ??= each;
    }
    return found;
  }

  /** True if the exchange queries the next name in the search path. */
  #walksOn(each: Growing, last: SeenExchange, exchange: SeenExchange): boolean {
    if (each.found || each.exchanges.some((one) => haveSameName(one, exchange))) return false;
    const { sentMs } = exchange;
    // The next name follows once the previous one is settled.
    let settled = true;
    let absent = true;
    for (const one of each.exchanges) {
      if (!haveSameName(one, last)) continue;
      if (one.rcode !== RCODE.NXDOMAIN) absent = false;
      if (one.ending === 'answered' || isAnsweredElsewhere(each, one)) continue;
      if (one.ending === 'waiting' && sentMs - one.sentMs < PATIENCE_MS) return false;
      settled = false;
    }
    const sinceMs = sentMs - each.lastMs;
    if (settled && sinceMs > (absent ? NEXT_FAR_MS : NEXT_MS)) return false;
    // If a segment has two queries, the capture may contain only the first name.
    const { name } = isCut(last.name)
      ? each.exchanges.find((one) => haveSameName(one, last))!
      : last;
    if (isCut(name) || isCut(exchange.name)) return this.#domains.mayStep(name, exchange.name);
    const step = this.#domains.step(name, exchange.name);
    if (step === null || (each.stem !== null && step.stem !== each.stem)) return false;
    // From the typed name on, a program may continue on its own.
    if (settled && sinceMs > NEXT_MS && step.from === '') return false;
    each.stem = step.stem;
    this.#domains.learn(step);
    return true;
  }

  /**
   * Drops several clients at once, those that have been silent for longest, because finding a Map's first entry skips
   * all entries deleted before it.
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
    // Unlike entries, `values()` does not allocate arrays, and this runs every second.
    for (const growing of this.#clients.values()) {
      const { client } = growing[0]!;
      for (let at = 0; at < growing.length;) {
        const each = growing[at]!;
        if (nowMs - each.lastMs <= (each.open > 0 ? PAUSE_MS : NEXT_FAR_MS)) {
          // Otherwise, these bytes would pin those of all exchanges from the same time.
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

/** The number of questions remembered for clients' other addresses. When it is reached, all are dropped. */
const QUESTIONS_MAX = 2048;

interface AskedQuestion {
  readonly exchange: SeenExchange;
  readonly home: Growing;
  /** For a different name with the same ID and type. */
  readonly other: AskedQuestion | null;
}

/**
 * Lookups by dual-stack clients that have name servers in both families. They repeat an unanswered question over the
 * other family with the same ID.
 */
class OtherFamily {
  /** The newest by ID, type and name. Keys are numbers, because a string would have to be built for each query. */
  readonly #asked = new Map<number, AskedQuestion>();
  /** The newest by name, by type. */
  readonly #named = new Map<number, Map<string, AskedQuestion>>();
  #size = 0;
  /** Set once both families have been seen, because nothing is stored until then. */
  #isWanted = false;
  #isV6: boolean | null = null;

  add(exchange: SeenExchange, home: Growing): void {
    if (!this.#isWanted) {
      const isV6 = exchange.client.address.includes(':');
      this.#isWanted = isV6 || this.#isV6 === true;
      this.#isV6 ??= isV6;
      if (!this.#isWanted) return;
    }
    if (this.#size >= QUESTIONS_MAX) this.#forget();
    this.#size++;
    const { type, name } = exchange;
    const key = questionKey(exchange);
    const known = this.#asked.get(key);
    const isSame = known?.exchange.name === name;
    const asked = { exchange, home, other: (isSame ? known?.other : known) ?? null };
    this.#asked.set(key, asked);
    let named = this.#named.get(type);
    if (named === undefined) this.#named.set(type, (named = new Map()));
    named.set(name, asked);
  }

  /** The lookup that the exchange continues, or null if there is none. */
  homeOf(exchange: SeenExchange): Growing | null {
    if (this.#size === 0) return null;
    const { type, name } = exchange;
    let same = this.#asked.get(questionKey(exchange)) ?? null;
    while (same !== null && same.exchange.name !== name) same = same.other;
    if (same !== null && isOfOther(same.exchange, exchange, 0, PAUSE_MS))
      return same.home.closed ? null : same.home;
    const named = this.#named.get(type)?.get(name);
    const { from, to } = goRepeatMs.ofLookup;
    if (named !== undefined && isOfOther(named.exchange, exchange, from, to))
      return named.home.closed ? null : named.home;
    return null;
  }

  clear(): void {
    this.#forget();
    this.#isWanted = false;
    this.#isV6 = null;
  }

  #forget(): void {
    this.#asked.clear();
    this.#named.clear();
    this.#size = 0;
  }
}

/** True if an unanswered question is being repeated from an address in the other family. */
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

/** Packs ID and type into a small integer. */
function questionKey({ id, type }: SeenExchange): number {
  return (id << 16) | type;
}

/** All names in a search start with the same label. */
function firstLabelHash(name: string): number {
  let hash = FIXED_HASH_START;
  for (let at = 0; at < name.length; at++) {
    const code = name.charCodeAt(at);
    if (code === 0x2e) break;
    hash = nextFixedHash(hash, code);
  }
  return hash;
}

/** True if the exchange queries the same name in the same call, either for the other family or as a retry. */
function goesOn(each: Growing, exchange: SeenExchange): boolean {
  const { name, type, id, sentMs, protocol } = exchange;
  // A truncated question's type is unknown, so its ID tells the families apart.
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
    // This is the other family, queried either immediately or after the first was answered or timed out.
    if (other === null || !(cut || (isAddressType(type) && isAddressType(other.type))))
      return false;
    if (cut && isThird) return !isDone(other) && sentMs - other.sentMs > PATIENCE_MS;
    if (sentMs - other.sentMs < TOGETHER_MS) return true;
    if (other.ending === 'answered') return sentMs - each.lastMs < NEXT_MS;
    return sentMs - other.sentMs > PATIENCE_MS;
  }
  // This is a retry, because the reply was truncated, refused or missing, or came from the next server. (If one reply
  // is truncated, glibc repeats both questions before it has received the other reply. All known clients reuse the ID.)
  if (protocol === 'tcp' && latest.protocol === 'udp')
    if ((latest.replyFlags & FLAG.TC) !== 0 || id === latest.id) return true;
  if (latest.ending === 'answered') {
    if (latest.rcode !== RCODE.NOERROR && latest.rcode !== RCODE.NXDOMAIN) return true;
    // glibc repeats both if one was lost or truncated. If c-ares rejects a reply from another port, it repeats the
    // query.
    if (id === latest.id) return true;
    return other !== null && !isDone(other) && sentMs - other.sentMs > PATIENCE_MS;
  }
  if (latest.server.address !== exchange.server.address) return true;
  return sentMs - latest.sentMs > PATIENCE_MS || latest.ending === 'retried';
}

/** True if another server has answered the same query. musl sends it to all servers, and the first reply counts. */
function isAnsweredElsewhere({ exchanges }: Growing, { id, type, server }: SeenExchange): boolean {
  return exchanges.some(
    (other) =>
      other.id === id &&
      other.type === type &&
      other.ending === 'answered' &&
      other.server.address !== server.address,
  );
}

function isDone(exchange: SeenExchange): boolean {
  return !isLost(exchange) && exchange.ending !== 'waiting';
}
