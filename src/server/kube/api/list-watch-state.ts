/**
 * Determines a reflector's next request: the version, the kind of list that its API server supports, and the delay
 * before it.
 */
import { Backoff } from '../../base/backoff.ts';
import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import type { ApiFailure } from './failure.ts';

/**
 * The next step after a failure, and how to report it. `detour` repeats the request in a different way, without a
 * report, and `relist` does the same with a list. `dropped` means that a watch broke off, which is routine. `failure`
 * is reported.
 */
export interface NextTry {
  readonly as: 'detour' | 'relist' | 'dropped' | 'failure';
  /** Milliseconds to wait first. */
  readonly waitMs: number;
}

/** Upper limit on Retry-After, which a misconfigured proxy may set to hours. */
const RETRY_AFTER_MAX_MS = 60_000;
/**
 * Milliseconds a watch must last for the list before it to have been worthwhile. The next list is then requested at
 * once.
 */
const USEFUL_LIST_MS = 60_000;
/**
 * Number of broken lists before streaming lists are abandoned, and number of failed watches before a list is requested.
 */
const GARBLED_LISTS = 3;
const WATCH_FAILURES = 5;

/** Facts about one kind at one API server, learned from its answers. */
export class ListWatchState {
  /** The version to watch from, or null if a list is due. */
  version: string | null = null;
  /** True if the last watch broke off early. */
  interrupted = false;
  readonly #clock: Clock;
  readonly #forms: number;
  readonly #backoff: Backoff;
  /** The delay after lists from which no watch could continue. */
  readonly #relisting: Backoff;
  #form = 0;
  #listedAt: number | null = null;
  #streaming = true;
  /**
   * True if streaming was abandoned because of an error that may be temporary. An ordinary list will show whether it
   * is.
   */
  #doubted = false;
  #pages = true;
  #watchFailures = 0;
  #garbledLists = 0;

  /** @param forms number of API versions that may serve the kind */
  constructor(clock: Clock, random: Random, forms: number) {
    this.#clock = clock;
    this.#forms = forms;
    this.#backoff = new Backoff(clock, random);
    this.#relisting = new Backoff(clock, random);
  }

  /** Index of the API version in which the kind is requested. */
  get form(): number {
    return this.#form;
  }

  get streaming(): boolean {
    return this.#streaming;
  }

  get pages(): boolean {
    return this.#pages;
  }

  get hasListed(): boolean {
    return this.#listedAt !== null;
  }

  /** True if the last request succeeded. */
  get isHealthy(): boolean {
    return this.#backoff.failures === 0;
  }

  /** Call this when a list is complete, with the list's version. */
  listed(version: string): void {
    this.version = version;
    this.#listedAt = this.#clock.now();
    this.interrupted = false;
    this.#pages = true;
    this.#doubted = false;
    this.#backoff.succeed();
  }

  /** Call this for each event in a watch or a streaming list. */
  progressed(): void {
    this.#backoff.succeed();
    this.#watchFailures = 0;
  }

  /** Call this when the server has come back after failures, so that the next delay is short again. */
  returned(): void {
    this.#backoff.succeed();
  }

  /** Call when a request has failed. */
  fail(failure: ApiFailure): NextTry {
    const watching = this.version !== null;
    this.interrupted ||= watching;
    if (!watching && this.#tryOtherwise(failure)) return { as: 'detour', waitMs: 0 };
    const first = this.isHealthy;
    const backoffMs = this.#backoff.fail();
    switch (failure.kind) {
      case 'gone':
        // Either a page's continue token has expired, so the next list uses no pages. Or the watch's version is too
        // old, so a list is due.
        if (!watching) this.#pages = !this.#pages;
        this.version = null;
        return {
          as: 'relist',
          waitMs: Math.max(first ? 0 : backoffMs, watching ? this.#relistMs() : 0),
        };
      case 'future':
        // The database was restored from a backup. Its versions are behind ours, and only a list can show what it
        // contains.
        this.version = null;
        if (watching && first) return { as: 'detour', waitMs: this.#relistMs() };
        break;
      case 'invalid':
        this.version = null;
        break;
      case 'missing':
        // An API version is no longer served, because the server was upgraded and now has a better one.
        this.version = null;
        this.#form = 0;
        if (watching && first) return { as: 'detour', waitMs: this.#relistMs() };
        break;
      case 'unauthorized':
        // New credentials may be all that is needed.
        if (first) return { as: 'detour', waitMs: 0 };
        break;
      default:
        if (watching) this.#watchFailed(failure);
        else this.#listFailed(failure);
    }
    const waitMs = Math.max(backoffMs, Math.min(failure.retryAfterMs ?? 0, RETRY_AFTER_MAX_MS));
    // It is routine for a watch to break off if it can be resumed at once.
    const dropped = watching && first && failure.kind === 'network';
    return { as: dropped ? 'dropped' : 'failure', waitMs };
  }

  /** Call this if the server does not support the request. Returns true if there is another way to list. */
  #tryOtherwise(failure: ApiFailure): boolean {
    // Servers whose etcd is too old for streaming lists (before 3.4.31 and 3.5.13) answer with 500.
    if (this.#streaming && (failure.kind === 'invalid' || failure.status === 500)) {
      this.#streaming = false;
      this.#doubted = failure.kind !== 'invalid';
      return true;
    }
    if (failure.kind === 'missing' && this.#form + 1 < this.#forms) {
      this.#form++;
      return true;
    }
    return false;
  }

  #listFailed({ kind }: ApiFailure): void {
    // Ordinary lists fail as well, so streaming was not to blame.
    if (this.#doubted) {
      this.#doubted = false;
      this.#streaming = true;
    }
    // A proxy in between may break streaming lists.
    const garbled = kind === 'malformed' || kind === 'silent';
    if (garbled && ++this.#garbledLists >= GARBLED_LISTS) this.#streaming = false;
  }

  #watchFailed({ kind }: ApiFailure): void {
    // The version itself may cause server errors (after a database restore, for example), but not a missing connection
    // or permission.
    if (kind !== 'server' && kind !== 'malformed') return;
    if (++this.#watchFailures < WATCH_FAILURES) return;
    this.version = null;
    this.#watchFailures = 0;
  }

  /** Returns the delay before the next list in milliseconds, if the previous list was not useful for long. */
  #relistMs(): number {
    if (this.#clock.now() - (this.#listedAt ?? -Infinity) >= USEFUL_LIST_MS)
      this.#relisting.succeed();
    const first = this.#relisting.failures === 0;
    const waitMs = this.#relisting.fail();
    return first ? 0 : waitMs;
  }
}
