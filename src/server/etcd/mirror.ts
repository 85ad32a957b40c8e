import { Backoff } from '../base/backoff.ts';
import { sleep, type Clock } from '../base/clock.ts';
import { FailureReport, roundedDuration } from '../base/failure-report.ts';
import type { Log } from '../base/log.ts';
import type { Random } from '../base/random.ts';
import { releaseBytes } from '../runtime/release-bytes.ts';
import { oneLine } from '../base/visible.ts';
import type { EtcdClient } from './client.ts';
import { EtcdFailure, type EtcdFailureKind } from './etcd-failure.ts';
import type { GrpcStream } from '../transport/grpc/grpc-stream.ts';
import {
  readWatch,
  TooManyEvents,
  watchRequest,
  type KeyRange,
  type KeyValue,
  type WatchEvent,
  type WatchResponse,
} from './messages.ts';
import { MessageError } from '../base/protobuf.ts';

/** The store for the copy. Buffers are valid only during the call. */
export interface MirrorTarget {
  /** Starts listing everything again. The old content is retained until `complete`. */
  begin(): void;
  /** Receives part of the list, where a `value` of null was too large. Keys within a range are in order. */
  listed(entries: readonly ListedEntry[]): void;
  /** The list is complete, so keys that are missing from it no longer exist. */
  complete(): void;
  changed(events: readonly WatchEvent[]): void;
}

/** A key in a list. `value` is null if it is too large, and `lease` is 0n if the key has none. */
export interface ListedEntry {
  readonly key: Buffer;
  readonly value: Buffer | null;
  readonly lease: bigint;
}

/** Receives the counts. */
export interface MirrorHooks {
  listed(why: ListReason): void;
  failed(kind: EtcdFailureKind): void;
  /** Reports whether etcd is being followed, so that the copy equals what is in etcd. */
  following(follows: boolean): void;
  /** Everything up to this revision is known. */
  reached(revision: number): void;
}

/**
 * The reason for listing everything. It may be the first time, or history was compacted, or etcd went back in time or
 * is a different cluster. Other reasons are a message that was too large, and new room for omitted keys.
 */
export type ListReason = 'start' | 'compacted' | 'restored' | 'large' | 'room';

/**
 * The parts of a mirror: the keys to copy (`ranges`), their origin (`client`), and the store for the copy (`target`).
 */
export interface MirrorParts {
  readonly client: Pick<EtcdClient, 'range' | 'watch' | 'moveOn'>;
  readonly ranges: readonly KeyRange[];
  readonly target: MirrorTarget;
  readonly hooks: MirrorHooks;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/**
 * Maximum number of keys in a list reply, and in the first one. etcd counts all remaining keys for every page, so small
 * pages are expensive for it.
 */
const PAGE_KEYS = 2000;
const PAGE_FIRST = 100;
/** Target size of a page in bytes. A few pages are in memory at a time, here and on their way to the workers. */
const PAGE_BYTES = 512 * 1024;
/** A cluster that comes back must be followed within 2 s, so no delay is longer than that. */
const BACKOFF = { firstMs: 50, mostMs: 800 };
/**
 * Everything is listed repeatedly only if etcd discards its history as fast as it is followed, or reports it
 * incorrectly.
 */
const RELIST_BACKOFF = { firstMs: 50, mostMs: 30_000 };
/** Milliseconds after which a watch counts as successful, so that the next failure is unrelated. */
const GOOD_MS = 5000;
/** Milliseconds between log lines about why everything is listed again. */
const RELIST_TOLD_MS = 60_000;
/** Maximum length of a reason reported by etcd. */
const REASON_MAX = 300;
/** Milliseconds within which watches must be created. */
const CREATED_MS = 5000;

/**
 * Mirrors ranges of keys, by listing all of them at one revision and then watching from the next revision on. A watch
 * that breaks is resumed. Everything is listed again and compared only if etcd no longer has the history, or has gone
 * back in time. Keys are removed only because of an event or a complete list.
 */
export class Mirror {
  readonly #parts: MirrorParts;
  readonly #backoff: Backoff;
  readonly #relisting: Backoff;
  readonly #report: FailureReport;
  readonly #stopping = new AbortController();
  /** The first unknown revision for each range, or null if everything has to be listed. */
  #next: number[] | null = null;
  /** Ranges that the user may read. */
  #allowed: boolean[] = [];
  #why: ListReason = 'start';
  /**
   * The last reported reason for listing everything again, the time of that report, and the number of lists since then
   * that were not reported.
   */
  #toldReason: ListReason = 'start';
  #toldAt = -Infinity;
  #untold = 0;
  #cluster = 0n;
  #lastGoodAt = -1;
  #running: Promise<void> | null = null;
  /** True if `listAgain` has been called since the last list began. */
  #wanted = false;
  #endWatch: ((failure: EtcdFailure) => void) | null = null;

  constructor(parts: MirrorParts) {
    this.#parts = parts;
    this.#backoff = new Backoff(parts.clock, parts.random, BACKOFF);
    this.#relisting = new Backoff(parts.clock, parts.random, RELIST_BACKOFF);
    this.#report = new FailureReport({
      log: parts.log,
      clock: parts.clock,
      work: 'following etcd',
    });
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Lists everything again, because the store now has room for keys that were omitted. */
  listAgain(): void {
    this.#wanted = true;
    this.#endWatch?.(new ListAgain());
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  get #stopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  async #run(): Promise<void> {
    const { clock, client, hooks } = this.#parts;
    while (!this.#stopped) {
      let createdAt = Infinity;
      let failure: EtcdFailure;
      try {
        if (this.#next === null) await this.#list();
        failure = await this.#follow(() => {
          createdAt = clock.now();
          hooks.following(true);
          this.#report.over();
        });
      } catch (error) {
        if (!(error instanceof EtcdFailure)) throw error;
        failure = error;
      }
      if (createdAt !== Infinity) {
        this.#lastGoodAt = clock.now();
        if (clock.now() - createdAt >= GOOD_MS) {
          this.#backoff.succeed();
          this.#relisting.succeed();
        }
      }
      if (this.#stopped) return;
      await this.#recover(failure, client);
    }
  }

  /** Decides the next step, and waits. */
  async #recover(failure: EtcdFailure, client: MirrorParts['client']): Promise<void> {
    const { clock, hooks } = this.#parts;
    const { kind } = failure;
    const relist = listReasons[kind];
    let wait = this.#backoff.fail();
    if (relist !== undefined && this.#next !== null) {
      wait = this.#relisting.fail();
      this.#next = null;
      this.#why =
        failure instanceof WentBack ? 'restored' : failure instanceof ListAgain ? 'room' : relist;
      this.#tellRelist(failure.message);
    } else {
      hooks.following(false);
      hooks.failed(kind);
      client.moveOn(failure);
      this.#report.failed(failure, Math.max(100, wait), this.#keptText());
    }
    await sleep(clock, wait, this.#stopping.signal);
  }

  /** Reports it at once if the previous reason was different, or else once a minute. */
  #tellRelist(text: string): void {
    const { clock, log } = this.#parts;
    const now = clock.now();
    if (this.#toldReason === this.#why && now - this.#toldAt < RELIST_TOLD_MS) {
      this.#untold++;
      return;
    }
    const before = this.#untold === 0 ? '' : `, as ${this.#untold} times since the last such line`;
    this.#toldReason = this.#why;
    this.#toldAt = now;
    this.#untold = 0;
    log.info(`${text}; listing everything again${before}`);
  }

  #keptText(): string {
    if (this.#next === null && this.#lastGoodAt < 0) return 'nothing is known yet';
    if (this.#lastGoodAt < 0) return 'answers stay unchanged';
    const age = this.#parts.clock.now() - this.#lastGoodAt;
    return `answers use data from ${roundedDuration(age)} ago`;
  }

  /**
   * Lists all ranges at the same revision.
   * @throws EtcdFailure
   */
  async #list(): Promise<void> {
    const { ranges, target, hooks } = this.#parts;
    hooks.listed(this.#why);
    this.#wanted = false;
    target.begin();
    let revision = 0;
    const allowed: boolean[] = [];
    for (const range of ranges) {
      try {
        revision = await this.#listRange(range, revision);
        allowed.push(true);
      } catch (error) {
        // Permission for `PATH/` is sufficient. The name of the zone itself is a separate key.
        const spared =
          range.end === null && error instanceof EtcdFailure && error.kind === 'forbidden';
        if (!spared) throw error;
        allowed.push(false);
      }
    }
    target.complete();
    this.#allowed = allowed;
    this.#next = ranges.map(() => revision + 1);
    hooks.reached(revision);
  }

  /** @returns the revision that was listed */
  async #listRange(range: KeyRange, at: number): Promise<number> {
    const { client, target } = this.#parts;
    let revision = at;
    let { key } = range;
    let limit = PAGE_FIRST;
    for (;;) {
      let page;
      try {
        page = await client.range({ key, end: range.end, limit, revision });
      } catch (error) {
        if (!(error instanceof EtcdFailure) || error.kind !== 'large') throw error;
        if (limit > 1) {
          limit = Math.ceil(limit / 8);
          continue;
        }
        // A single value is too large, so request only its key.
        page = await client.range({ key, end: range.end, limit, revision, keysOnly: true });
        page = { ...page, kvs: page.kvs.map((kv) => ({ ...kv, value: null })) };
      }
      if (this.#stopped) throw new EtcdFailure('unavailable', 'the mirror was stopped');
      checkOrder(page.kvs, key);
      if (revision === 0) {
        ({ revision } = page.header);
        this.#cluster = page.header.cluster;
      }
      target.listed(page.kvs);
      const last: KeyValue | ListedEntry | undefined = page.kvs.at(-1);
      if (last !== undefined) key = Buffer.concat([last.key, Buffer.of(0)]);
      const size = Math.max(1, page.bytes.length / Math.max(1, page.kvs.length));
      releaseBytes(page.bytes);
      if (!page.more) return revision;
      if (last === undefined)
        throw new EtcdFailure('malformed', 'etcd announced more keys but sent an empty page');
      limit = Math.max(1, Math.min(PAGE_KEYS, 8 * limit, Math.floor(PAGE_BYTES / size)));
    }
  }

  /**
   * Watches until the watch ends.
   * @returns why it ended
   */
  async #follow(created: () => void): Promise<EtcdFailure> {
    const { client, clock, ranges } = this.#parts;
    const next = this.#next!;
    const { promise, resolve } = Promise.withResolvers<EtcdFailure>();
    let waiting = this.#allowed.filter(Boolean).length;
    const end = (failure: EtcdFailure): void => resolve(failure);
    const stream: GrpcStream = await client.watch({
      onMessage: (message) => {
        try {
          const response = readWatch(message);
          if (response.created && !response.canceled && --waiting === 0) created();
          this.#take(response, next);
        } catch (error) {
          if (error instanceof EtcdFailure) end(error);
          else if (error instanceof TooManyEvents)
            end(new EtcdFailure('large', `an etcd watch: ${error.message}`));
          else if (error instanceof MessageError)
            end(new EtcdFailure('malformed', `an etcd watch: ${error.message}`));
          else throw error;
        }
      },
      onEnd: (failure) => end(failure ?? new EtcdFailure('unavailable', 'etcd ended the watch')),
    });
    const stop = (): void => end(new EtcdFailure('unavailable', 'the mirror was stopped'));
    this.#stopping.signal.addEventListener('abort', stop, { once: true });
    if (this.#stopped) stop();
    this.#endWatch = end;
    if (this.#wanted) end(new ListAgain());
    const timer = clock.after(CREATED_MS, () => {
      if (waiting > 0) end(new EtcdFailure('silent', 'etcd does not start the watch'));
    });
    ranges.forEach((range, index) => {
      if (this.#allowed[index] === true) stream.write(watchRequest(index + 1, range, next[index]!));
    });
    try {
      return await promise;
    } finally {
      timer.cancel();
      this.#endWatch = null;
      this.#stopping.signal.removeEventListener('abort', stop);
      stream.cancel();
    }
  }

  /** @throws EtcdFailure if the watch has ended */
  #take(response: WatchResponse, next: number[]): void {
    const { target, hooks } = this.#parts;
    const { header, events } = response;
    if (response.canceled) throw canceled(response);
    if (header.cluster !== this.#cluster)
      throw new WentBack('etcd is a different cluster than before');
    const index = response.watch - 1;
    const known = next[index];
    if (known === undefined) return;
    // A database restored from a backup has gone back in time, and reports nothing until it reaches this revision
    // again.
    if (response.created && header.revision < known - 1) {
      throw new WentBack(
        `etcd is at revision ${header.revision}, lower than the last one (${known - 1}), as after a restore from a backup`,
      );
    }
    // Older events are already known.
    const news = events.filter(({ kv }) => kv.modRevision >= known);
    if (news.length > 0) target.changed(news);
    if (response.fragment) return;
    const last = events.at(-1)?.kv.modRevision;
    if (last !== undefined) next[index] = Math.max(known, last + 1);
    else if (!response.created) next[index] = Math.max(known, header.revision + 1);
    hooks.reached(Math.max(...next) - 1);
  }
}

/**
 * Checks that a list is in ascending order, because otherwise it would never end.
 * @throws EtcdFailure
 */
function checkOrder(entries: readonly { readonly key: Buffer }[], from: Buffer): void {
  let before = from;
  for (const [index, { key }] of entries.entries()) {
    const order = Buffer.compare(key, before);
    if (order < 0 || (order === 0 && index > 0))
      throw new EtcdFailure('malformed', 'an etcd list is not in key order');
    before = key;
  }
}

/** There are more keys, so this is not a failure. */
class ListAgain extends EtcdFailure {
  constructor() {
    super('compacted', 'there is room for keys that were omitted');
  }
}

/** After these failures, a watch's position in history is useless. */
const listReasons: Partial<Record<EtcdFailureKind, ListReason>> = {
  compacted: 'compacted',
  large: 'large',
};

/** The known content may never have existed. */
class WentBack extends EtcdFailure {
  constructor(text: string) {
    super('compacted', text);
  }
}

function canceled({ compactRevision, cancelReason }: WatchResponse): EtcdFailure {
  if (compactRevision > 0)
    return new EtcdFailure(
      'compacted',
      `etcd has compacted its history up to revision ${compactRevision}`,
    );
  const reason =
    cancelReason === '' ? 'no reason given' : oneLine(cancelReason.slice(0, REASON_MAX));
  const text = `etcd canceled the watch: ${reason}`;
  if (/auth token|auth store|Unauthenticated/.test(cancelReason))
    return new EtcdFailure('token', text);
  if (/permission denied/i.test(cancelReason)) return new EtcdFailure('forbidden', text);
  return new EtcdFailure('unavailable', text);
}
