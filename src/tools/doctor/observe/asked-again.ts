/**
 * Queries that were repeated although their reply had passed, so it did not reach the waiting
 * program. A capture at a DNS pod or on a node shows losses beyond it in no other way.
 */
import { appendTo } from '../../../server/base/append-to.ts';
import { FLAG, isAddressType, RCODE, TYPE } from '../../../server/wire/iana.ts';
import { CopiedBytes } from '../../capture/pair/copied-bytes.ts';
import type { SearchDomains } from '../../capture/pair/search-walk.ts';
import { goRepeatMs } from '../../capture/pair/go-repeat.ts';
import {
  isLost,
  needsFragments,
  UDP_BYTES,
  type SeenExchange,
} from '../../capture/pair/seen-exchange.ts';
import { MIN_CASES, SAME_QUERY_MS, SPARED_SHARE } from '../thresholds/evidence.ts';
import {
  FIXED_IDS,
  HEALTH_CHECK_MS,
  PAIR_MS,
  SHORTEST_PATIENCE_MS,
} from '../thresholds/transport.ts';
import {
  isTogether,
  ofType,
  otherHalf,
  RecentQuestions,
  type AskedQuestions,
  type RecentQuestion,
} from './recent-questions.ts';
import { ValidAnswers } from './valid-answers.ts';

/** Limits for stored repeats, clients to follow, and long and late replies. */
const REPEATS_MAX = 1000;
const CLIENTS_MAX = 8000;
const LONG_MAX = 2000;
const LATE_MAX = 5000;

export interface RepeatedQuery {
  /** The answered exchange, and the one that repeats its question. */
  readonly first: SeenExchange;
  readonly again: SeenExchange;
  /** True if the first query came without one for the other address family. */
  readonly isAlone: boolean;
}

interface ClientHabits {
  asked: number;
  ofA: number;
  ofAaaa: number;
  /** Queries with the previous query’s id and a different name. */
  reused: number;
  /** The most consecutive queries with one id and question. */
  longestRun: number;
  lastMs: number;
  lastName: string;
  lastId: number;
  /** The last query for another name than the last one. */
  otherMs: number;
  /** Questions with small replies that were soon repeated with another id. */
  smallAnew: number;
  /** The last query whose reply needs fragments. */
  longMs: number;
  /** Queries for the root, which forwarders use as health checks. */
  probes: number;
  readonly questions: AskedQuestions;
}

/** A forwarder’s health check that was answered and soon repeated. */
export interface RepeatedCheck extends RepeatedQuery {
  /** True if a reply that needs fragments came shortly before: it may have been lost, and caused the check. */
  readonly isAfterLong: boolean;
}

interface Waited {
  readonly sentMs: number;
  readonly repliedMs: number;
}

/** Collects repeated queries whose reply had passed. */
export class AskedAgain {
  /** External names that were queried again while an earlier answer was valid. */
  readonly whileValid: ValidAnswers = new ValidAnswers();
  readonly #domains: SearchDomains;
  readonly #repeats: RepeatedQuery[] = [];
  /** By client and name: one half of a pair that was repeated, until the other half is. */
  readonly #halves = new Map<string, RepeatedQuery>();
  /** The cached `unexplained`, until something is added. */
  #settled: readonly RepeatedQuery[] | null = null;
  /** Repeats after replies larger than a packet. A client’s programs may also query at the same time. */
  readonly #longRepeats: RepeatedQuery[] = [];
  /** Such repeats with another id. A cache that got the reply does not repeat the query. */
  readonly #longAnew: RepeatedQuery[] = [];
  /** Those of replies that fit into a packet, but not into UDP without EDNS. */
  readonly #middleAnew: RepeatedQuery[] = [];
  /** Forwarders’ health checks that were answered and repeated. */
  readonly #checks: RepeatedCheck[] = [];
  readonly #long = new Map<string, SeenExchange>();
  /** By client and name: queries whose reply came after programs lose patience. */
  readonly #late = new Map<string, Waited[]>();
  #lateCount = 0;
  readonly #habits = new Map<string, ClientHabits>();
  readonly #recent = new RecentQuestions();
  readonly #kept = new CopiedBytes();

  constructor(domains: SearchDomains) {
    this.#domains = domains;
  }

  /** Adds exchanges in the order in which they end. */
  add(exchange: SeenExchange): void {
    if (exchange.protocol !== 'udp' || exchange.logged !== undefined) return;
    const { client, id, name, type, sentMs } = exchange;
    let habits = this.#habits.get(client.address);
    if (habits === undefined) {
      if (this.#habits.size >= CLIENTS_MAX) return;
      habits = newHabits();
      this.#habits.set(client.address, habits);
    }
    habits.asked++;
    if (type === TYPE.A) habits.ofA++;
    if (type === TYPE.AAAA) habits.ofAaaa++;
    this.#addLate(exchange);
    if (name === '.') habits.probes++;
    this.#settled = null;
    if (habits.lastId === id && habits.lastName !== name) habits.reused++;
    this.#recent.advance(sentMs);
    if (isUsable(exchange) && needsFragments(exchange.replyBytes)) {
      this.#addLong(exchange);
      habits.longMs = Math.max(habits.longMs, sentMs);
    }
    const newest = habits.questions.get(name) ?? null;
    const last = ofType(newest, type);
    if (this.#halves.size > 0) this.#pair(exchange);
    let run = 0;
    if (last !== null) {
      const isSameId = last.exchange.id === id;
      if (!isSameId) this.#addAnew(habits, last.exchange, exchange);
      if (isSameId && isAfter(last.exchange, exchange, SHORTEST_PATIENCE_MS, SAME_QUERY_MS)) {
        run = last.run + 1;
        habits.longestRun = Math.max(habits.longestRun, run);
        this.#keep(last, exchange);
      } else if (
        !isSameId &&
        isAfter(last.exchange, exchange, goRepeatMs.certain.from, goRepeatMs.certain.to)
      ) {
        if (isStopped(last.exchange, exchange, habits, this.#domains)) this.#keep(last, exchange);
        else if (otherHalf(newest, last.exchange) !== null)
          setFirst(this.#halves, halfKey(exchange), {
            ...{ first: last.exchange, again: exchange, isAlone: false },
          });
      }
    }
    if (sentMs >= habits.lastMs) {
      if (name !== habits.lastName) habits.otherMs = habits.lastMs;
      habits.lastMs = sentMs;
      habits.lastName = name;
      habits.lastId = id;
    }
    if (isUsable(exchange)) this.#recent.add(habits.questions, newest, exchange, run);
  }

  /** Drops the other half if this query repeats it for the other family: such programs query the name every 5 s. */
  #pair(exchange: SeenExchange): void {
    const half = halfKey(exchange);
    const other = this.#halves.get(half)?.again;
    if (other !== undefined && other.type !== exchange.type && isTogether(other, exchange))
      this.#halves.delete(half);
  }

  /** Questions with large replies that were repeated with the same id. */
  get longRepeats(): readonly RepeatedQuery[] {
    return this.#longRepeats;
  }

  /** Forwarders’ health checks that were answered but soon repeated, so their replies do not arrive. */
  get checks(): readonly RepeatedCheck[] {
    return this.#checks;
  }

  /** Questions whose replies have 513 bytes or more, and fit into a packet, that were asked again with another id. */
  get middleAnew(): readonly RepeatedQuery[] {
    return this.#middleAnew;
  }

  /** Questions with small replies that this client soon repeated with another id. */
  smallAnewOf(client: string): number {
    return this.#habits.get(client)?.smallAnew ?? 0;
  }

  /** Questions with large replies that clients repeated with another id, while those with small ones hardly were. */
  get longAnew(): readonly RepeatedQuery[] {
    const byClient = Map.groupBy(this.#longAnew, ({ first }) => first.client.address);
    return [...byClient].flatMap(([client, repeats]) =>
      this.#spares(client, repeats) ? repeats : [],
    );
  }

  /** Questions with large replies that clients repeated with another id, whatever else they repeated. */
  get allLongAnew(): readonly RepeatedQuery[] {
    return this.#longAnew;
  }

  #spares(client: string, repeats: readonly RepeatedQuery[]): boolean {
    const middle = this.#middleAnew.filter(({ first }) => first.client.address === client).length;
    return this.smallAnewOf(client) + middle <= SPARED_SHARE * repeats.length;
  }

  /** True for a client that sends health checks to its upstream. */
  isProbing(client: string): boolean {
    return (this.#habits.get(client)?.probes ?? 0) > 0;
  }

  #addAnew(habits: ClientHabits, first: SeenExchange, again: SeenExchange): void {
    if (!isAfter(first, again, SHORTEST_PATIENCE_MS, SAME_QUERY_MS)) return;
    // Forwarders use this question as a health check, and stop after one reply.
    if (first.name === '.') {
      const isAfterLong = again.sentMs - habits.longMs <= HEALTH_CHECK_MS;
      if (again.sentMs - first.sentMs <= HEALTH_CHECK_MS)
        this.#store(this.#checks, { first, again, isAlone: true, isAfterLong });
      return;
    }
    if (first.replyBytes <= UDP_BYTES) {
      habits.smallAnew++;
      return;
    }
    const list = needsFragments(first.replyBytes) ? this.#longAnew : this.#middleAnew;
    this.#store(list, { first, again, isAlone: true });
  }

  #addLate(exchange: SeenExchange): void {
    const { sentMs, repliedMs } = exchange;
    if (repliedMs === null || repliedMs - sentMs < SHORTEST_PATIENCE_MS) return;
    if (this.#lateCount >= LATE_MAX) return;
    this.#lateCount++;
    appendTo(this.#late, halfKey(exchange), { sentMs, repliedMs });
  }

  #addLong(exchange: SeenExchange): void {
    const { client, id, name, type } = exchange;
    const key = `${client.address} ${type} ${name} ${id}`;
    const before = this.#long.get(key);
    if (this.#long.size >= LONG_MAX) this.#long.clear();
    this.#kept.keep(exchange);
    this.#long.set(key, exchange);
    if (before !== undefined && isAfter(before, exchange, SHORTEST_PATIENCE_MS, SAME_QUERY_MS))
      this.#store(this.#longRepeats, { first: before, again: exchange, isAlone: true });
  }

  clear(): void {
    this.whileValid.clear();
    this.#settled = null;
    this.#habits.clear();
    this.#recent.clear();
    this.#long.clear();
    this.#late.clear();
    this.#lateCount = 0;
    this.#halves.clear();
    const lists = [
      this.#repeats,
      this.#longRepeats,
      this.#longAnew,
      this.#middleAnew,
      this.#checks,
    ];
    for (const list of lists) list.length = 0;
  }

  /**
   * Repeats that neither a loss nor a late reply explains, here or before this point. A client that lacks one of two
   * replies repeats both queries.
   *
   * @param losses queries without a reply
   */
  unexplained(losses: readonly SeenExchange[]): readonly RepeatedQuery[] {
    this.#settled ??= this.#without(losses);
    return this.#settled;
  }

  #without(losses: readonly SeenExchange[]): readonly RepeatedQuery[] {
    const lost = Map.groupBy(losses, ({ name }) => name);
    return [...this.#repeats, ...this.#halves.values()].filter(({ first, again, isAlone }) => {
      const habits = this.#habits.get(first.client.address)!;
      if (hasFixedIds(habits)) return false;
      // The other half of the pair was lost before it came here, so the client repeats both.
      if (isAlone && isAddressType(first.type) && asksBoth(habits)) return false;
      // A client with two address families repeats from one what it lost on the other.
      const isSure = first.id === again.id;
      const isBetween = ({ sentMs }: Waited | SeenExchange): boolean =>
        sentMs > first.sentMs - PAIR_MS && sentMs < again.sentMs;
      const isLostBetween = lost
        .get(first.name)
        ?.some(
          (loss) => isBetween(loss) && (!isSure || loss.client.address === first.client.address),
        );
      if (isLostBetween === true) return false;
      const late = this.#late.get(halfKey(first)) ?? [];
      return !late.some((each) => isBetween(each) && each.repliedMs >= again.sentMs);
    });
  }

  #keep({ exchange: first, isPaired }: RecentQuestion, again: SeenExchange): void {
    this.#store(this.#repeats, { first, again, isAlone: !isPaired });
  }

  #store<T extends RepeatedQuery>(list: T[], repeat: T): void {
    if (list.length >= REPEATS_MAX) return;
    this.#kept.keep(repeat.first);
    this.#kept.keep(repeat.again);
    list.push(repeat);
  }
}

/** True if the client looks up both address families. */
function asksBoth({ ofA, ofAaaa }: ClientHabits): boolean {
  const least = Math.min(ofA, ofAaaa);
  return least >= MIN_CASES && least >= SPARED_SHARE * Math.max(ofA, ofAaaa);
}

const halfKey = ({ client, name }: SeenExchange): string => `${client.address} ${name}`;

function isAfter(
  { sentMs, repliedMs }: SeenExchange,
  again: SeenExchange,
  leastMs: number,
  mostMs: number,
): boolean {
  const sinceMs = again.sentMs - sentMs;
  return (
    sinceMs >= leastMs && sinceMs <= mostMs && again.sentMs - repliedMs! >= SHORTEST_PATIENCE_MS
  );
}

/** True if the client repeats a name of its search path instead of trying the next one. */
function isStopped(
  before: SeenExchange,
  again: SeenExchange,
  { lastName, otherMs }: ClientHabits,
  domains: SearchDomains,
): boolean {
  if (before.rcode !== RCODE.NXDOMAIN || domains.domainOf(again.name) === null) return false;
  return lastName === again.name && otherMs <= before.sentMs;
}

function setFirst(map: Map<string, RepeatedQuery>, key: string, repeat: RepeatedQuery): void {
  if (map.size < REPEATS_MAX || map.has(key)) map.set(key, repeat);
}

/** True if a client that gets the reply has no reason to retry. */
function isUsable(exchange: SeenExchange): boolean {
  const { rcode, replyFlags } = exchange;
  return (
    !isLost(exchange) &&
    exchange.repliedMs !== null &&
    (replyFlags & FLAG.TC) === 0 &&
    (rcode === RCODE.NOERROR || rcode === RCODE.NXDOMAIN)
  );
}

const newHabits = (): ClientHabits => ({
  ...{ asked: 0, ofA: 0, ofAaaa: 0, reused: 0, longestRun: 0 },
  ...{ lastMs: -Infinity, lastName: '', lastId: -1 },
  ...{ otherMs: -Infinity, smallAnew: 0, longMs: -Infinity, probes: 0, questions: new Map() },
});

function hasFixedIds({ asked, reused, longestRun }: ClientHabits): boolean {
  return (
    longestRun >= FIXED_IDS.run || (reused >= FIXED_IDS.least && reused >= FIXED_IDS.share * asked)
  );
}
