/**
 * `cache`: decides which queries are answered from memory, which wait for an identical query, and which are passed on.
 */
import { andThen, isLater, Later, type Maybe, orElse } from '../../base/maybe.ts';
import {
  definePlugin,
  type Next,
  type Plugin,
  type WorkerContext,
} from '../../engine/contract/plugin.ts';
import { EDE, FLAG, OPCODE, RCODE, TYPE } from '../../wire/iana.ts';
import type { Query } from '../../transport/query.ts';
import { openScope, type ReplyScope } from '../../transport/reply-scope.ts';
import { failure, overloaded, type ExtendedError, type Reply } from '../../wire/reply.ts';
import { exchangeTaps, personalAnswers, roundTrips } from '../../engine/contract/ports.ts';
import { Filling } from './cache-admission.ts';
import { controlCache } from './control.ts';
import { Inspection } from './inspection.ts';
import type { CacheMessage, CacheOrder } from './cache-messages.ts';
import { packEntries, unpackEntries } from './packed-entries.ts';
import { InFlightQuery, InFlightQueries } from './in-flight-queries.ts';
import { readOptions, syntax, type CacheOptions, type StaleOptions } from './cache-options.ts';
import { DENIAL, SUCCESS } from './entries.ts';
import { Store } from './store.ts';
import { CacheMetrics, type CacheCounters } from './cache-counters.ts';
import { Sources } from './sources.ts';
import { ZoneChanges } from './zone-changes.ts';
import { ZoneMatch } from '../../engine/contract/zone-match.ts';

/** Longest time an NXDOMAIN waits for the name's other type if both were queried together, in ms. */
const PAIR_WAIT_MS = 100;
/**
 * Maximum number of concurrent background refreshes. Any more are left to a later query and counted
 * (`ndots_cache_refresh_rejects_total`).
 */
const REFRESHES_MAX = 1000;

const staleAnswer: readonly ExtendedError[] = [{ code: EDE.STALE_ANSWER, text: '' }];
const staleNxdomain: readonly ExtendedError[] = [{ code: EDE.STALE_NXDOMAIN, text: '' }];

/** Stores replies and answers from memory until their TTL expires (cache.md). */
export const cache: Plugin = definePlugin({
  syntax,
  control: controlCache,
  setup: (options, context, next) => new Cache(readOptions(options), context, next).link,
});

class Cache {
  readonly link: Next;
  readonly #options: CacheOptions;
  readonly #context: WorkerContext;
  readonly #next: Next;
  readonly #store: Store;
  readonly #filling: Filling;
  readonly #metrics: CacheMetrics;
  readonly #inFlight = new InFlightQueries();
  readonly #sources = new Sources();
  readonly #inspection: Inspection;
  readonly #changes: ZoneChanges | null;
  /** Created on the first query, because plugins may register until setup is complete. */
  #roundTrips: readonly ((query: Query) => boolean)[] | null = null;
  #personal: readonly ((query: Query) => boolean)[] | null = null;
  #refreshes = 0;

  constructor(options: CacheOptions, context: WorkerContext, next: Next) {
    const { success, denial, maxBytes, stale, preferPositive, prefetch, disable } = options;
    const { clock, random } = context;
    this.#options = options;
    this.#context = context;
    this.#next = next;
    this.#store = new Store({
      capacities: [success.capacity, denial.capacity],
      bytes: maxBytes,
      staleSeconds: stale === null ? 0 : Math.floor(stale.forMs / 1000),
      preferPositive,
      counting: prefetch.amount > 0,
      clock,
      random,
    });
    const { followMs, zones } = options;
    this.#changes = followMs === null ? null : new ZoneChanges(zones, followMs, clock);
    const exempt = (half: string): ZoneMatch =>
      new ZoneMatch(disable.filter((line) => line.half === half).flatMap((line) => line.zones));
    this.#filling = new Filling({
      options,
      store: this.#store,
      clock,
      exempt: [exempt('success'), exempt('denial')],
      changes: this.#changes,
    });
    this.#inspection = new Inspection(this.#store, this.#sources, clock);
    context.offer(exchangeTaps, this.#sources.tap);
    this.#metrics = new CacheMetrics(context.metrics, options.zones.join(','), context.view);
    context.onStop(() => {
      this.#metrics.close();
      this.#store.close();
    });
    context.onMessage((message) => void this.#takeOrder(message as CacheOrder));
    this.link = this.#makeLink();
  }

  /** Runs commands that list the entries, pack them for another process, or load packed ones. */
  async #takeOrder(order: CacheOrder): Promise<void> {
    const { clock } = this.#context;
    const tell = (message: CacheMessage): void => this.#context.post(message);
    switch (order.kind) {
      case 'unpack':
        unpackEntries(order.entries, this.#store, clock.now());
        return;
      case 'pack':
        return tell({
          kind: 'packed',
          id: order.id,
          entries: packEntries(this.#store, clock.now()),
        });
      default:
        tell(await this.#inspection.run(order));
        this.#metrics.showAll(this.#store);
    }
  }

  #makeLink(): Next {
    const store = this.#store;
    const metrics = this.#metrics;
    const { zones, keepTtl, stale, prefetch } = this.#options;
    const changes = this.#changes;
    // The block has already checked its own zones, so only the cache's zones are checked here.
    const all = this.#context.zones.every((zone) => zones.includes(zone));
    const covered = new ZoneMatch(zones);
    return (query) => {
      if (query.opcode !== OPCODE.QUERY) return this.#next(query);
      if (!all && !covered.holds(query)) return this.#next(query);
      const counters = metrics.of(query.route);
      counters.requests.add(1);
      if (query.type === TYPE.AXFR || query.type === TYPE.IXFR) {
        // Zone transfers are always answered by the plugin that serves the zone, even if the name is known not to
        // exist.
        counters.misses.add(1);
        return this.#next(query);
      }
      if (this.#isPersonal(query)) {
        counters.misses.add(1);
        return this.#next(query);
      }
      const slot = store.pick(query);
      if (slot < 0) {
        counters.misses.add(1);
        // A non-recursive reply is useless to clients that want recursion.
        return query.recursionDesired ? this.#ask(query, counters) : this.#next(query);
      }
      if (changes !== null && store.half(slot) === DENIAL && query.recursionDesired) {
        if (!changes.holds(query, store.born(slot))) {
          counters.misses.add(1);
          return this.#ask(query, counters);
        }
        if (changes.due(query, this.#context.clock.now())) this.#refresh(slot, query, counters, 0);
      }
      counters.hits[store.half(slot)].add(1);
      store.use(slot);
      const left = store.remaining(slot, query);
      if (left <= 0 && stale !== null) {
        return query.recursionDesired
          ? this.#serveStale(slot, query, counters, stale)
          : this.#next(query);
      }
      if (prefetch.amount > 0 && query.recursionDesired)
        this.#maybePrefetch(slot, left, query, counters);
      return store.hit(slot, keepTtl ? store.ttl(slot) : left);
    };
  }

  /** Passes the query on, or makes it wait for an identical query's reply. */
  #ask(query: Query, counters: CacheCounters): Maybe<Reply> {
    if (this.#options.coalesce === 0 || this.#mustPass(query)) return this.#lead(query, counters);
    const pending = this.#inFlight.find(query);
    return pending === null ? this.#lead(query, counters) : this.#join(pending, query, counters);
  }

  /** True for loop-detection probes, which must never be coalesced with themselves. */
  #mustPass(query: Query): boolean {
    const seekers = (this.#roundTrips ??= this.#context.find(roundTrips));
    return seekers.some((seeks) => seeks(query));
  }

  /** True if the answer may be specific to this client, in which case it is neither stored nor shared. */
  #isPersonal(query: Query): boolean {
    const personal = (this.#personal ??= this.#context.find(personalAnswers));
    if (query.isSigned) return true;
    // A plain loop without a closure, because every query runs it.
    for (const isPersonal of personal) if (isPersonal(query)) return true;
    return false;
  }

  #join(pending: InFlightQuery, query: Query, counters: CacheCounters): Maybe<Reply> {
    const inFlight = this.#inFlight;
    if (!query.mayWait) return overloaded;
    if (inFlight.waiting >= this.#options.coalesce) {
      counters.shed.add(1);
      return tooManyWait();
    }
    inFlight.waiting++;
    counters.coalesced.add(1);
    return andThen(pending.join(), this.#joined, query.keep());
  }

  /** Queries that cannot use the reply they waited for are passed on individually. */
  readonly #joined = (found: Reply | null, query: Query): Maybe<Reply> =>
    found ?? this.#next(query);

  #lead(query: Query, counters: CacheCounters): Maybe<Reply> {
    // If AD is set, an upstream reports whether it validated the reply, without sending signatures (RFC 6840 section
    // 5.7).
    query.upstreamFlags |= FLAG.AD;
    const scope = openScope(query);
    const reply = this.#next(query);
    if (isLater(reply)) return this.#fly(query.keep(), reply, counters, scope);
    query.scope = scope.outer;
    return scope.personal
      ? reply
      : this.#fill(query, reply, counters, this.#sources.of(query, reply));
  }

  #fly(
    query: Query,
    reply: Promise<Reply> | Later<Reply>,
    counters: CacheCounters,
    scope: ReplyScope,
  ): Maybe<Reply> {
    const pending = new InFlightQuery(query, counters, scope);
    this.#inFlight.add(pending);
    return orElse(andThen(reply, this.#arrived, pending) as typeof reply, this.#crashed, pending);
  }

  readonly #arrived = (found: Reply, pending: InFlightQuery): Maybe<Reply> => {
    pending.answered = true;
    pending.source = this.#sources.of(pending.query, found);
    const other = found.rcode === RCODE.NXDOMAIN ? this.#inFlight.sibling(pending) : null;
    return other === null ? this.#settle(found, pending) : this.#settlePair(found, pending, other);
  };

  readonly #settle = (found: Reply, pending: InFlightQuery): Reply => {
    this.#inFlight.remove(pending);
    if (pending.scope.personal) {
      pending.over(null);
      return found;
    }
    const reply = this.#fill(pending.query, found, pending.counters, pending.source);
    pending.over(reply);
    return reply;
  };

  readonly #crashed = (error: unknown, pending: InFlightQuery): never => {
    this.#inFlight.remove(pending);
    pending.failed(error);
    throw error;
  };

  /**
   * Clients query A and AAAA in pairs. If one gets NXDOMAIN while the other is in flight, both are decided together. If
   * the other finds the name, this type has no data.
   */
  #settlePair(found: Reply, pending: InFlightQuery, other: InFlightQuery): Later<Reply> {
    const later = new Later<Reply>();
    let over = false;
    const land = (): void => {
      if (over) return;
      over = true;
      timer.cancel();
      later.resolve(this.#settle(found, pending));
    };
    const timer = this.#context.clock.after(PAIR_WAIT_MS, land);
    other.afterwards(land);
    return later;
  }

  #fill(query: Query, reply: Reply, counters: CacheCounters, source: number): Reply {
    const filled = this.#filling.fill(query, reply);
    if (filled.mismatch) counters.drops.add(1);
    if (filled.slot >= 0) {
      this.#store.from(filled.slot, source);
      this.#metrics.show(counters, this.#store);
    }
    return filled.reply;
  }

  #maybePrefetch(slot: number, left: number, query: Query, counters: CacheCounters): void {
    const { amount, gapMs, percentage } = this.#options.prefetch;
    const store = this.#store;
    const hits = store.hits.count(slot, query, this.#context.clock, gapMs);
    if (hits < amount || left > Math.ceil((percentage / 100) * store.ttl(slot))) return;
    this.#refresh(slot, query, counters, 0);
  }

  #serveStale(
    slot: number,
    query: Query,
    counters: CacheCounters,
    options: StaleOptions,
  ): Maybe<Reply> {
    const reply = this.#store.reply(slot);
    const stale = (): Reply => {
      counters.stale.add(1);
      const errors = reply.rcode === RCODE.NXDOMAIN ? staleNxdomain : staleAnswer;
      return reply.with({ ttl: options.ttlSeconds, errors });
    };
    if (options.mode === 'immediate') {
      this.#refresh(slot, query, counters, options.recheckMs);
      return stale();
    }
    if (!query.mayWait || !this.#store.mayRefresh(slot, this.#context.clock.now())) return stale();
    let asked = query;
    const shields = this.#options.preferPositive && this.#store.half(slot) === SUCCESS;
    const filling = this.#filling;
    const judge = (found: Reply): Reply => {
      if (shields ? filling.answers(asked, found) : filling.refreshes(asked, found))
        return options.timeoutMs === 0 ? found : this.#kept(asked, found);
      this.#pause(slot, reply, options.recheckMs);
      return stale();
    };
    const found = this.#ask(query, counters);
    if (!isLater(found)) return judge(found);
    asked = query.keep();
    const judged = found.then(judge, () => judge(failure(RCODE.SERVFAIL, 'cache')));
    if (options.timeoutMs === 0) return judged;
    return new Promise((resolve, reject) => {
      const timer = this.#context.clock.after(options.timeoutMs, () => resolve(stale()));
      judged.then((result) => {
        timer.cancel();
        resolve(result);
      }, reject);
    });
  }

  #kept(query: Query, found: Reply): Reply {
    const store = this.#store;
    const slot = store.pick(query);
    const left = slot < 0 ? 0 : store.remaining(slot, query);
    return left <= 0 ? found : store.hit(slot, left);
  }

  #refresh(slot: number, query: Query, counters: CacheCounters, recheckMs: number): void {
    const store = this.#store;
    const before = store.reply(slot);
    if (!store.mayRefresh(slot, this.#context.clock.now())) return;
    if (this.#refreshes >= REFRESHES_MAX) return counters.refreshRejects.add(1);
    store.retryAt(slot, Infinity);
    this.#refreshes++;
    counters.prefetches.add(1);
    const asking = detached(query);
    const scope = openScope(asking);
    const hits = store.hits.of(slot);
    const settle = (found: Reply | null): void => {
      this.#refreshes--;
      const flips = found !== null && !found.bare && this.#flips(slot, before, found);
      if (flips) this.#changes?.change(asking);
      if (found !== null && !found.bare && !flips && !scope.personal) {
        const { slot: fresh, mismatch } = this.#filling.fill(asking, found);
        if (mismatch) counters.drops.add(1);
        if (fresh >= 0) {
          store.hits.inherit(fresh, hits, this.#context.clock.now());
          store.from(fresh, this.#sources.of(asking, found));
          this.#metrics.show(counters, store);
        }
      }
      this.#pause(
        slot,
        before,
        found !== null && this.#filling.refreshes(asking, found) ? 0 : recheckMs,
      );
    };
    // Starts only once the query that triggered it has its reply.
    Promise.resolve()
      .then(() => this.#next(asking))
      .then(settle, () => settle(null));
  }

  /**
   * True if an early refresh would change whether the name exists. Such a change has to wait until the entry expires.
   * Otherwise, the two queries in the pair that triggered the refresh would get different results.
   */
  #flips(slot: number, before: Reply, found: Reply): boolean {
    const store = this.#store;
    if (!store.holds(slot, before) || store.end(slot) <= this.#context.clock.now()) return false;
    return (before.rcode === RCODE.NXDOMAIN) !== (found.rcode === RCODE.NXDOMAIN);
  }

  /** Delays the entry's next refresh by `pauseMs`, unless the entry has changed. */
  #pause(slot: number, before: Reply, pauseMs: number): void {
    if (this.#store.holds(slot, before))
      this.#store.retryAt(slot, this.#context.clock.now() + pauseMs);
  }
}

/** Copies a query to send it on the cache's own behalf, over TCP so that the reply is not truncated. */
function detached(query: Query): Query {
  const copy = query.copy();
  copy.proto = 'tcp';
  copy.upstreamFlags |= FLAG.AD;
  copy.notes = null;
  // No client waits for a refresh, so it may wait itself. Its path is not recorded for the client's query.
  copy.recorder = null;
  copy.mayWait = true;
  return copy;
}

function tooManyWait(): Reply {
  return failure(RCODE.SERVFAIL, 'cache', crowded, crowdedErrors);
}

const crowded = new Error('too many queries wait for identical in-flight queries');
const crowdedErrors: readonly ExtendedError[] = [{ code: EDE.OTHER, text: crowded.message }];
