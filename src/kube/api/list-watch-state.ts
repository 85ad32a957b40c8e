/** How a reflector goes on: from which version, in which way its API server takes lists, and after which wait. */
import { Backoff } from '../../base/backoff.ts';
import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import type { ApiFailure } from './failure.ts';

/**
 * What to do after a failure, and how to tell of it. detour: what failed is asked for in another way, which nobody needs to know;
 * relist: the same, by a list; dropped: a watch broke off, which happens every day; failure: people are told.
 */
export interface NextTry {
  readonly as: 'detour' | 'relist' | 'dropped' | 'failure';
  /** Milliseconds to wait first. */
  readonly waitMs: number;
}

/** What a proxy in between says by mistake must not keep us away for hours. */
const RETRY_AFTER_MAX_MS = 60_000;
/** A list from which a watch went on for so long was worth making: the next one is made at once. */
const USEFUL_LIST_MS = 60_000;
/** Lists that break off in their middle before streaming is given up, and watches that fail before a list is made. */
const GARBLED_LISTS = 3;
const WATCH_FAILURES = 5;

/** What is known of one kind at one API server, learned from what it has answered so far. */
export class ListWatchState {
  /** From where to watch on; null: a list is due. */
  version: string | null = null;
  /** The last watch broke off before its time. */
  interrupted = false;
  readonly #clock: Clock;
  readonly #forms: number;
  readonly #backoff: Backoff;
  /** Of lists that no watch could begin from. */
  readonly #relisting: Backoff;
  #form = 0;
  #listedAt: number | null = null;
  #streaming = true;
  /** Streaming was given up for an error that may be the server's only for now: a list will tell. */
  #doubted = false;
  #pages = true;
  #watchFailures = 0;
  #garbledLists = 0;

  /** @param forms in how many forms the kind may be served */
  constructor(clock: Clock, random: Random, forms: number) {
    this.#clock = clock;
    this.#forms = forms;
    this.#backoff = new Backoff(clock, random);
    this.#relisting = new Backoff(clock, random);
  }

  /** In which of its forms the kind is asked for. */
  get form(): number {
    return this.#form;
  }

  /** Whether a list may be asked for as the beginning of a watch. */
  get streaming(): boolean {
    return this.#streaming;
  }

  /** Whether a list is asked for in pages. */
  get pages(): boolean {
    return this.#pages;
  }

  /** Whether there has been a complete list. */
  get hasListed(): boolean {
    return this.#listedAt !== null;
  }

  /** Whether the last try succeeded. */
  get isHealthy(): boolean {
    return this.#backoff.failures === 0;
  }

  /** A list is complete, and this is its version. */
  listed(version: string): void {
    this.version = version;
    this.#listedAt = this.#clock.now();
    this.interrupted = false;
    this.#pages = true;
    this.#doubted = false;
    this.#backoff.succeed();
  }

  /** An event of a watch, or of a list that is streamed, has come. */
  progressed(): void {
    this.#backoff.succeed();
    this.#watchFailures = 0;
  }

  /** A try has failed. */
  fail(failure: ApiFailure): NextTry {
    const watching = this.version !== null;
    this.interrupted ||= watching;
    if (!watching && this.#tryOtherwise(failure)) return { as: 'detour', waitMs: 0 };
    const first = this.isHealthy;
    const backoffMs = this.#backoff.fail();
    switch (failure.kind) {
      case 'gone':
        // Pages that outlived their list: the next one goes without. A watch too old: a list is due.
        if (!watching) this.#pages = !this.#pages;
        this.version = null;
        return {
          as: 'relist',
          waitMs: Math.max(first ? 0 : backoffMs, watching ? this.#relistMs() : 0),
        };
      case 'future':
        // A database restored from a backup: its versions are behind ours, and only a list tells what it holds.
        this.version = null;
        if (watching && first) return { as: 'detour', waitMs: this.#relistMs() };
        break;
      case 'invalid':
        this.version = null;
        break;
      case 'missing':
        // A form that was served is not any more: the server was upgraded, and has a better one.
        this.version = null;
        this.#form = 0;
        if (watching && first) return { as: 'detour', waitMs: this.#relistMs() };
        break;
      case 'unauthorized':
        // Fresh credentials may be all it takes.
        if (first) return { as: 'detour', waitMs: 0 };
        break;
      default:
        if (watching) this.#watchFailed();
        else this.#listFailed(failure);
    }
    const waitMs = Math.max(backoffMs, Math.min(failure.retryAfterMs ?? 0, RETRY_AFTER_MAX_MS));
    // A dropped watch that is taken up again at once is everyday life.
    const dropped = watching && first && failure.kind === 'network';
    return { as: dropped ? 'dropped' : 'failure', waitMs };
  }

  /** A list that this server does not know of: whether there is another way to ask for it. */
  #tryOtherwise(failure: ApiFailure): boolean {
    // 500 is what a server says whose etcd is too old for streaming lists (before 3.4.31 and 3.5.13).
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
    // Lists do not work either, so it was not the streaming.
    if (this.#doubted) {
      this.#doubted = false;
      this.#streaming = true;
    }
    // A proxy in between may not let streaming lists through.
    const garbled = kind === 'malformed' || kind === 'silent';
    if (garbled && ++this.#garbledLists >= GARBLED_LISTS) this.#streaming = false;
  }

  #watchFailed(): void {
    // The version itself may be what the server chokes on (a database restored from a backup).
    if (++this.#watchFailures < WATCH_FAILURES) return;
    this.version = null;
    this.#watchFailures = 0;
  }

  /** How long to wait before a list when the one before was of no use for long, milliseconds. */
  #relistMs(): number {
    if (this.#clock.now() - (this.#listedAt ?? -Infinity) >= USEFUL_LIST_MS)
      this.#relisting.succeed();
    const first = this.#relisting.failures === 0;
    const waitMs = this.#relisting.fail();
    return first ? 0 : waitMs;
  }
}
