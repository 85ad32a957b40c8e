/**
 * Queries that a client repeated at the same server while an earlier answer was still valid according to its TTL. If the
 * client caches, there are hardly any. If the server caches, it does not fail for them, and its TTLs count down.
 */
import { FLAG, isAddressType, RCODE } from '../../../server/wire/iana.ts';
import { isLost, latencyOf, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { LATE_MS } from '../thresholds/evidence.ts';
import { firstTtl } from './last-lookups.ts';
import { PairMap } from './pair-map.ts';

const QUESTIONS_MAX = 5000;
/** Servers and types of one client and name. */
const SERVERS_MAX = 16;

/** One client's queries for one name and type to one server. */
export interface RepeatedName {
  readonly client: string;
  readonly server: string;
  readonly name: string;
  readonly type: number;
  /** The highest TTL, seconds. */
  ttl: number;
  answered: number;
  /** Answers with a lower TTL than the highest one. */
  lower: number;
  /** Queries while an earlier answer was valid, and those that failed after a wait. */
  repeats: number;
  failed: number;
  /** The times of the first and the last repeat, milliseconds since 1970. */
  firstMs: number;
  lastMs: number;
  /** The period in which there is always a valid answer, milliseconds since 1970. */
  fromMs: number;
  untilMs: number;
}

/** Counts repeats for external names. Cluster names, like those of any authoritative server, always have the full TTL. */
export class ValidAnswers {
  /** By client and name, for each server and type. */
  readonly #all: PairMap<string, string, RepeatedName[]> = new PairMap(QUESTIONS_MAX);

  get list(): readonly RepeatedName[] {
    return this.#all.list.flat();
  }

  add(exchange: SeenExchange): void {
    const { client, server, name, type, sentMs, repliedMs, rcode, answers, reply } = exchange;
    if (!isAddressType(type) || exchange.logged !== undefined) return;
    const isFound =
      !isLost(exchange) &&
      rcode === RCODE.NOERROR &&
      answers > 0 &&
      reply !== null &&
      repliedMs !== null &&
      (exchange.replyFlags & FLAG.AA) === 0;
    const same = this.#all.get(client.address, name);
    if (same === undefined && !isFound) return;
    const known = same?.find((each) => each.type === type && each.server === server.address);
    if (known !== undefined && sentMs > known.fromMs && sentMs < known.untilMs) {
      known.repeats++;
      known.firstMs = Math.min(known.firstMs, sentMs);
      known.lastMs = Math.max(known.lastMs, sentMs);
      if (rcode === RCODE.SERVFAIL && (latencyOf(exchange) ?? 0) >= LATE_MS) known.failed++;
    }
    if (!isFound) return;
    const ttl = firstTtl(reply);
    if (ttl === null) return;
    const entry = known ?? this.#add(exchange);
    if (entry === null) return;
    entry.answered++;
    if (ttl < entry.ttl) entry.lower++;
    entry.ttl = Math.max(entry.ttl, ttl);
    // Exchanges end in any order.
    if (repliedMs > entry.untilMs) entry.fromMs = repliedMs;
    entry.untilMs = Math.max(entry.untilMs, repliedMs + 1000 * ttl);
  }

  clear(): void {
    this.#all.clear();
  }

  #add(exchange: SeenExchange): RepeatedName | null {
    const list = this.#all.at(exchange.client.address, exchange.name, noNames);
    if (list === null || list.length >= SERVERS_MAX) return null;
    const made = newName(exchange);
    list.push(made);
    return made;
  }
}

const noNames = (): RepeatedName[] => [];

function newName({ client, server, name, type }: SeenExchange): RepeatedName {
  return {
    ...{ client: client.address, server: server.address, name, type },
    ...{ ttl: 0, answered: 0, lower: 0, repeats: 0, failed: 0 },
    ...{ firstMs: Infinity, lastMs: -Infinity, fromMs: -Infinity, untilMs: -Infinity },
  };
}
