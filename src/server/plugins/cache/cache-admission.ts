/** Decides whether a reply is stored, for how long and in which form. */
import type { Clock } from '../../base/clock.ts';
import { classify, hasExpiredSignature, type ReplyKind } from '../../wire/classify.ts';
import { RCODE, TYPE } from '../../wire/iana.ts';
import { readTtl, Records } from '../../wire/records.ts';
import type { Query } from '../../transport/query.ts';
import { failure, Reply } from '../../wire/reply.ts';
import { answersQuery } from '../../wire/upstream.ts';
import type { CacheOptions } from './cache-options.ts';
import { DENIAL, SUCCESS, type Half } from './entries.ts';
import { Store, type StoredAs } from './store.ts';
import type { ZoneChanges } from './zone-changes.ts';
import type { ZoneMatch } from '../../engine/contract/zone-match.ts';

/**
 * Number of seconds for which CoreDNS caches replies without a usable TTL: referrals, other result codes and empty
 * replies.
 */
const PLAIN_SECONDS = 5;
/** Longest time a name without data continues to exist after its first NXDOMAIN; see `#settle`. */
const HOLD_MS = 5000;

export interface FillingParts {
  readonly options: CacheOptions;
  readonly store: Store;
  readonly clock: Clock;
  readonly exempt: readonly [ZoneMatch, ZoneMatch];
  /** Null if denials stay valid for their whole TTL. */
  readonly changes: ZoneChanges | null;
}

export interface Filled {
  readonly reply: Reply;
  /** The slot where the reply was stored, or -1 if it was not stored. */
  readonly slot: number;
  /** True if its question differs from the query's. */
  readonly mismatch: boolean;
}

/** Decides whether and for how long to store a reply, and sets the TTLs in replies that did not come from the cache. */
export class Filling {
  readonly #parts: FillingParts;

  constructor(parts: FillingParts) {
    this.#parts = parts;
  }

  /** Stores the reply if allowed and returns the reply to send. */
  fill(query: Query, reply: Reply): Filled {
    if (reply.bare) return { reply, slot: -1, mismatch: false };
    if (query.type === TYPE.AXFR || query.type === TYPE.IXFR)
      return { reply, slot: -1, mismatch: false };
    if (!answersQuery(reply, query)) {
      // A message with a different question cannot be reused, because its compression pointers refer to that question.
      return { reply: failure(RCODE.SERVFAIL, 'cache', strange), slot: -1, mismatch: true };
    }
    const claimed = classify(reply, query.type);
    const ttlAt = this.#parts.store.offsets.of(reply);
    const kind = this.#isExpired(query, reply) ? 'other' : claimed;
    const half = halfOf(kind);
    const { clock, changes } = this.#parts;
    const now = clock.now();
    const entry = {
      ttlAt,
      rcode: reply.rcode,
      everyType: kind === 'nxdomain',
      seconds: this.#seconds(claimed, reply, ttlAt),
      born: now,
    };
    if (changes !== null && (kind === 'nxdomain' || kind === 'nodata'))
      entry.seconds = Math.min(entry.seconds, changes.observe(reply));
    if (Store.keeps(query)) {
      if (reply.rcode === RCODE.NXDOMAIN) {
        const until = this.#settle(query, reply, kind, now);
        if (until > 0) {
          entry.rcode = RCODE.NOERROR;
          entry.everyType = false;
          const left = Math.ceil((until - now) / 1000);
          // The entry expires together with the one it depends on, so that two entries cannot keep each other alive.
          if (left <= entry.seconds) {
            entry.seconds = left;
            entry.born = until - left * 1000;
          }
        }
      } else if (reply.rcode === RCODE.NOERROR && kind !== 'other') {
        this.#parts.store.admit(query);
      }
    }
    const slot = this.#put(query, reply, kind, half, entry);
    return { reply: levelled(reply, entry), slot, mismatch: false };
  }

  /** True if a reply is allowed to replace an expired entry (RFC 8767 section 4). */
  refreshes(query: Query, reply: Reply): boolean {
    if (reply.bare || reply.truncated || this.#isExpired(query, reply)) return false;
    return reply.rcode === RCODE.NOERROR || (reply.rcode === RCODE.NXDOMAIN && reply.answers === 0);
  }

  answers(query: Query, reply: Reply): boolean {
    return classify(reply, query.type) === 'answer' && !this.#isExpired(query, reply);
  }

  #isExpired(query: Query, reply: Reply): boolean {
    if (!query.dnssecOk) return false;
    return hasExpiredSignature(reply, Math.floor(this.#parts.clock.wall() / 1000));
  }

  /** Returns how long to store the reply, in seconds, and sets the TTL in the reply to send. */
  #seconds(kind: ReplyKind, reply: Reply, ttlAt: Uint16Array): number {
    const { success, denial, servfailMs } = this.#parts.options;
    if (kind === 'failure') return Math.floor(servfailMs / 1000);
    const denies = reply.rcode === RCODE.NXDOMAIN ? reply.answers === 0 : kind === 'nodata';
    const { minSeconds, maxSeconds } = denies ? denial : success;
    const plain = kind === 'referral' || (reply.rcode !== RCODE.NOERROR && !denies);
    return within(plain ? PLAIN_SECONDS : lowest(reply, ttlAt), minSeconds, maxSeconds);
  }

  /**
   * Makes all types of a name agree on its existence when NXDOMAIN arrives while entries of other types exist:
   * - If there is data, NXDOMAIN is read as "no data of this type" while the data is cached. Servers that
   *   answer NXDOMAIN for AAAA beside an A record are common (RFC 4074 section 4.2).
   * - If there are only "no data" entries, the name has probably been removed. It continues to exist without
   *   data for a few seconds. All of these entries then expire together, and the name is queried again.
   * - A signed denial cannot be changed, so it is accepted and the entries are removed.
   * @returns the time until which the name exists, in clock ms; 0 if it does not exist and no entry contradicts that
   */
  #settle(query: Query, reply: Reply, kind: ReplyKind, now: number): number {
    const { store } = this.#parts;
    if (!(query.dnssecOk && isSigned(reply))) {
      const data = store.vouchedUntil(query, SUCCESS, now);
      if (data > 0) return data;
      const until = Math.min(now + HOLD_MS, store.vouchedUntil(query, DENIAL, now));
      if (until > 0) {
        store.endBy(query, until);
        return until;
      }
    }
    if (kind === 'nxdomain') store.deny(query);
    return 0;
  }

  #put(query: Query, reply: Reply, kind: ReplyKind, half: Half | null, entry: StoredAs): number {
    const { store, exempt } = this.#parts;
    if (half === null || entry.seconds <= 0 || !Store.keeps(query) || exempt[half].holds(query))
      return -1;
    store.look(query);
    const { denial, success } = store;
    // A failure must not replace a denial that can still be served stale.
    if (kind === 'failure' && denial >= 0 && store.rcode(denial) !== reply.rcode) {
      if (store.usable(denial, query)) return -1;
    }
    if (half === SUCCESS && denial >= 0) store.remove(denial);
    else if (
      half === DENIAL &&
      success >= 0 &&
      kind !== 'failure' &&
      !store.shielded(success, query)
    )
      store.remove(success);
    return store.put(query, reply, half, entry);
  }
}

function levelled(reply: Reply, { ttlAt, rcode, seconds: ttl }: StoredAs): Reply {
  return (rcode === reply.rcode ? reply : reply.recoded(rcode)).with({ ttlAt, ttl });
}

const strange = new Error('the reply is for another question');

function halfOf(kind: ReplyKind): Half | null {
  switch (kind) {
    case 'answer':
    case 'referral':
    case 'empty':
      return SUCCESS;
    case 'nodata':
    case 'nxdomain':
    case 'failure':
      return DENIAL;
    default:
      return null;
  }
}

function within(seconds: number, min: number, max: number): number {
  return Math.min(max, Math.max(min, seconds));
}

const records = new Records();

/**
 * Returns the lowest TTL that the records are sent with, or 5 s for a reply without records. `ttlAt` lists the TTL
 * offsets.
 */
function lowest(reply: Reply, ttlAt: Uint16Array): number {
  let seconds = -1;
  if (reply.ttlAt === null || reply.ttl < 0) {
    const { bytes, start } = reply;
    for (let i = 0; i < ttlAt.length; i++) {
      const ttl = readTtl(bytes, start + ttlAt[i]!);
      if (seconds < 0 || ttl < seconds) seconds = ttl;
    }
  } else {
    for (records.of(reply); records.next();) {
      const { ttl } = records;
      if (seconds < 0 || ttl < seconds) seconds = ttl;
    }
  }
  return seconds < 0 ? PLAIN_SECONDS : seconds;
}

function isSigned(reply: Reply): boolean {
  for (records.of(reply); records.next();) if (records.type === TYPE.RRSIG) return true;
  return false;
}
