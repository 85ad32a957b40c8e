/**
 * Determines a reflector's next request: the version, the kind of list that its API server supports, and how long to
 * wait before it.
 */
import { Backoff } from '../../base/backoff.ts';
import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import type { ApiFailure } from './failure.ts';

/**
 * The next step after a failure, and how to report it. `detour`: repeat the request in a different way, without a
 * report; `relist`: the same, with a list; `dropped`: a watch broke off, which is routine; `failure`: report it.
 */
export interface NextTry {
  readonly as: 'detour' | 'relist' | 'dropped' | 'failure';
  /** Milliseconds to wait first. */
  readonly waitMs: number;
}

/** A limit on Retry-After, which a proxy may wrongly set to hours. */
const RETRY_AFTER_MAX_MS = 60_000;
/**
 * Milliseconds. If a watch lasted this long, the list before it was worthwhile, and the next list is requested at once.
 */
const USEFUL_LIST_MS = 60_000;
/** Number of broken lists before streaming lists are abandoned, and of failed watches before a list is requested. */
const GARBLED_LISTS = 3;
const WATCH_FAILURES = 5;

/** Facts about one kind at one API server, learned from its answers. */
export class ListWatchState {
  /** The version to watch from; null: a list is due. */
  version: string | null = null;
  /** True if the last watch broke off early. */
  interrupted = false;
  readonly #clock: Clock;
  readonly #forms: number;
  readonly #backoff: Backoff;
  /** The delay after lists that no watch could continue from. */
  readonly #relisting: Backoff;
  #form = 0;
  #listedAt: number | null = null;
  #streaming = true;
  /** True if streaming was abandoned for an error that may be temporary, which an ordinary list will show. */
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

  /** True if streaming lists are used. */
  get streaming(): boolean {
    return this.#streaming;
  }

  /** True if lists are requested in pages. */
  get pages(): boolean {
    return this.#pages;
  }

  /** True if there has been a complete list. */
  get hasListed(): boolean {
    return this.#listedAt !== null;
  }

  /** True if the last request succeeded. */
  get isHealthy(): boolean {
    return this.#backoff.failures === 0;
  }

  /** Call when a list is complete, with its version. */
  listed(version: string): void {
    this.version = version;
    this.#listedAt = this.#clock.now();
    this.interrupted = false;
    this.#pages = true;
    this.#doubted = false;
    this.#backoff.succeed();
  }

  /** Call for each event in a watch or a streaming list. */
  progressed(): void {
    this.#backoff.succeed();
    this.#watchFailures = 0;
  }

  /** Call when the server has come back after failures, so that the next delay starts small. */
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
        // A page's continue token has expired, so the next list uses no pages. Or the watch's version is too old, so a
        // list is due.
        if (!watching) this.#pages = !this.#pages;
        this.version = null;
        return {
          as: 'relist',
          waitMs: Math.max(first ? 0 : backoffMs, watching ? this.#relistMs() : 0),
        };
      case 'future':
        // The database was restored from a backup. Its versions are behind ours, and only a list shows its content.
        this.version = null;
        if (watching && first) return { as: 'detour', waitMs: this.#relistMs() };
        break;
      case 'invalid':
        this.version = null;
        break;
      case 'missing':
        // An API version is no longer served, because the server was upgraded and has a better one.
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
    // A watch that breaks off and can be resumed at once is routine.
    const dropped = watching && first && failure.kind === 'network';
    return { as: dropped ? 'dropped' : 'failure', waitMs };
  }

  /** Call if the server does not support the request. Returns true if there is another way to list. */
  #tryOtherwise(failure: ApiFailure): boolean {
    // Servers whose etcd is too old for streaming lists (before 3.4.31 and 3.5.13) answer 500.
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
    // Ordinary lists fail as well, so streaming was not the cause.
    if (this.#doubted) {
      this.#doubted = false;
      this.#streaming = true;
    }
    // A proxy in between may break streaming lists.
    const garbled = kind === 'malformed' || kind === 'silent';
    if (garbled && ++this.#garbledLists >= GARBLED_LISTS) this.#streaming = false;
  }

  #watchFailed({ kind }: ApiFailure): void {
    // The version itself may cause server errors (a database restored from a backup), but not a missing connection or
    // permission.
    if (kind !== 'server' && kind !== 'malformed') return;
    if (++this.#watchFailures < WATCH_FAILURES) return;
    this.version = null;
    this.#watchFailures = 0;
  }

  /** Returns the delay until the next list in milliseconds, if the previous list was not useful for long. */
  #relistMs(): number {
    if (this.#clock.now() - (this.#listedAt ?? -Infinity) >= USEFUL_LIST_MS)
      this.#relisting.succeed();
    const first = this.#relisting.failures === 0;
    const waitMs = this.#relisting.fail();
    return first ? 0 : waitMs;
  }
}
