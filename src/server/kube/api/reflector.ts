/** Keeps a store in sync with one kind of object at an API server, by list and watch. */
import type { Clock } from '../../base/clock.ts';
import { FailureReport, roundedDuration } from '../../base/failure-report.ts';
import { asObject, child, isObject, text, type JsonObject } from '../../base/json-object.ts';
import { bugText, type Log } from '../../base/log.ts';
import type { Random } from '../../base/random.ts';
import {
  JsonLineReader,
  ListReader,
  MalformedStream,
  type JsonStream,
} from '../store/json-stream.ts';
import type { ReflectedStore } from '../store/reflected-store.ts';
import { isBehind } from '../store/resource-version.ts';
import type { ApiClient } from './client.ts';
import { ApiFailure, statusFailure } from './failure.ts';
import { ListWatchState } from './list-watch-state.ts';
import { presentVersion } from './present-version.ts';
import type { ResourceForm, WatchedResource } from './resources.ts';
import { serverReturn, type ServerReturn } from './server-return.ts';

/** A longer list is treated as endless. */
export interface ListMost {
  readonly items: number;
  readonly pages: number;
}

/** The resource to follow, the store to fill, and the callbacks. */
export interface ReflectorParts<T, C> {
  readonly client: ApiClient;
  readonly resource: WatchedResource<T>;
  readonly store: ReflectedStore<T, C>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly listMost?: ListMost;
  /** Returns true if the server can send a list as a watch (KEP-3157). If absent, lists are never requested that way. */
  canStream?(): Promise<boolean>;
  changes?(batch: readonly C[]): void;
  /** Called after each complete list. */
  listed(): void;
  /** Called when a request has failed and will be retried. */
  failed?(failure: ApiFailure): void;
}

/**
 * Keeps one store in sync with the API server's objects of one kind. It lists, then watches from the list's version,
 * and lists again only when the server no longer has that version. Whatever goes wrong, the store keeps its last good
 * state.
 */
export class Reflector<T, C> {
  readonly #parts: ReflectorParts<T, C>;
  readonly #state: ListWatchState;
  readonly #serverReturn: ServerReturn;
  readonly #failures: FailureReport;
  readonly #stopping = new AbortController();
  #running: Promise<void> | null = null;
  #lastGoodAt: number | null = null;
  /** True once bookmarks have been received. From then on, a connection that stays quiet must be dead. */
  #bookmarks = false;
  #out: C[] = [];
  /** Number of objects in the current list so far, or null if there is none. */
  #listed: { items: number; pages: number } | null = null;

  constructor(parts: ReflectorParts<T, C>) {
    this.#parts = parts;
    this.#serverReturn = serverReturn(parts);
    this.#state = new ListWatchState(parts.clock, parts.random, parts.resource.forms.length);
    this.#failures = new FailureReport({
      log: parts.log,
      clock: parts.clock,
      work: `list and watch of ${parts.resource.forms[0]!.name}`,
    });
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        const { version, streaming } = this.#state;
        if (version !== null) await this.#watch(version);
        else if (streaming && (await this.#parts.canStream?.()) === true) await this.#streamList();
        else await this.#list();
      } catch (error) {
        if (signal.aborted) break;
        const failure = this.#asFailure(error);
        const waitMs = this.#afterFailure(failure);
        if (waitMs <= 0) continue;
        const { path } = this.#currentForm();
        if (await this.#serverReturn.wait({ failure, path, waitMs, signal }))
          this.#state.returned();
      } finally {
        this.#listed = null;
        this.#flush();
      }
    }
  }

  async #list(): Promise<void> {
    const { client, store } = this.#parts;
    const form = this.#currentForm();
    // The first list may come from the server's cache, which spares its database when a whole cluster restarts. Later
    // lists must be current, because a server that lags behind would take us back to an older state.
    const version: Record<string, string> = this.#state.hasListed ? {} : { resourceVersion: '0' };
    const pages: Record<string, string> = this.#state.pages ? { limit: String(PAGE_ITEMS) } : {};
    let next = '';
    store.beginList();
    this.#listed = { items: 0, pages: 0 };
    const begun = this.#parts.clock.now();
    for (;;) {
      const splitter = new ListReader((item) => this.#put(form, item));
      await client.stream({
        path: form.path,
        query: {
          ...this.#selectors(),
          ...pages,
          ...(next === '' ? version : { continue: next }),
        },
        into: this.#flushing(splitter, () => begun),
        task: this.#task('list'),
        answerMs: LIST_ANSWER_MS,
        silenceMs: () => LIST_SILENCE_MS,
        watch: false,
        unhurried: () => this.#unhurried,
        signal: this.#stopping.signal,
      });
      const head = splitter.end();
      if (head.next !== '' && head.next !== next) {
        next = head.next;
        if (++this.#listed.pages >= this.#most.pages) throw this.#endless('pages');
        continue;
      }
      if (head.version === '') throw new MalformedStream('the list has no resourceVersion');
      this.#complete(head.version);
      return;
    }
  }

  /** Lists all objects at the start of a watch, which then continues. */
  async #streamList(): Promise<void> {
    this.#parts.store.beginList();
    this.#listed = { items: 0, pages: 0 };
    await this.#follow(
      {
        sendInitialEvents: 'true',
        resourceVersionMatch: 'NotOlderThan',
        resourceVersion: '',
      },
      true,
    );
    if (this.#state.version === null) throw new MalformedStream('the initial events ended early');
  }

  async #watch(version: string): Promise<void> {
    if (this.#state.interrupted) await this.#compareVersions(version);
    await this.#follow({ resourceVersion: version }, false);
  }

  /**
   * Checks that the server's database has not gone back in time, which the server does not report after a restore from
   * a backup. A watch from a future version stays silent until that version is reached, while the state known here may
   * never have existed. A watch that broke off is therefore resumed only from a version that the database has reached.
   * @throws ApiFailure if the database has gone back, or the server cannot be reached
   */
  async #compareVersions(version: string): Promise<void> {
    const { client } = this.#parts;
    const { path } = this.#currentForm();
    const task = this.#task('list');
    const present = await presentVersion(client, { path, task, signal: this.#stopping.signal });
    if (present !== null && isBehind(present, version)) throw this.#wentBack(present, version);
  }

  #wentBack(present: string, version: string): ApiFailure {
    const { client, log } = this.#parts;
    const text = `the API server at ${client.host} is at version ${present} but was at ${version} before, as after a restore from a backup; listing again`;
    log.warning(`${this.#currentForm().name}: ${text}`);
    return new ApiFailure({ kind: 'gone', text });
  }

  async #follow(query: Record<string, string>, initial: boolean): Promise<void> {
    const { client, clock, random } = this.#parts;
    const form = this.#currentForm();
    const seconds = WATCH_SECONDS + random.integer(WATCH_SECONDS + 1);
    const started = clock.now();
    let events = 0;
    let filling = initial;
    const lines = new JsonLineReader((line) => {
      events++;
      const done = this.#event(form, asObject(line), filling);
      this.#state.progressed();
      if (this.#state.hasListed) this.#lastGoodAt = clock.now();
      if (done) filling = false;
    });
    await client.stream({
      path: form.path,
      query: {
        ...this.#selectors(),
        ...query,
        watch: 'true',
        allowWatchBookmarks: 'true',
        timeoutSeconds: String(seconds),
      },
      into: this.#flushing(lines, () => (filling ? started : Infinity)),
      task: this.#task(initial ? 'list' : 'watch'),
      answerMs: LIST_ANSWER_MS,
      silenceMs: () => {
        if (filling) return LIST_SILENCE_MS;
        return this.#bookmarks ? BOOKMARK_SILENCE_MS : (seconds + 30) * 1000;
      },
      watch: true,
      unhurried: () => this.#unhurried,
      signal: this.#stopping.signal,
      began: () => {
        if (!initial) this.#good();
      },
    });
    const lastedMs = clock.now() - started;
    this.#state.interrupted = lastedMs < seconds * 1000;
    if (events === 0 && lastedMs < SHORT_WATCH_MS) {
      throw new ApiFailure({
        kind: 'network',
        text: `the API server at ${client.host} ended the ${form.name} watch immediately`,
      });
    }
  }

  /**
   * Applies one watch event.
   * @returns true if it ended the initial events
   */
  #event(form: ResourceForm<T>, event: JsonObject, filling: boolean): boolean {
    const object = child(event, 'object');
    const metadata = child(object, 'metadata');
    const type = text(event, 'type');
    switch (type) {
      case 'ADDED':
      case 'MODIFIED':
        this.#put(form, object);
        break;
      case 'DELETED':
        this.#parts.store.remove(text(metadata, 'namespace'), text(metadata, 'name'), this.#out);
        break;
      case 'BOOKMARK':
        this.#bookmarks = true;
        if (filling && text(child(metadata, 'annotations'), initialEventsEnd) === 'true') {
          this.#complete(text(metadata, 'resourceVersion'));
          return true;
        }
        break;
      case 'ERROR': {
        const code = object['code'];
        throw statusFailure({
          status: typeof code === 'number' ? code : 500,
          body: object,
          task: this.#task('watch'),
          retryAfterMs: null,
        });
      }
      default:
        throw new MalformedStream(`an event of type '${type}'`);
    }
    const version = text(metadata, 'resourceVersion');
    if (!filling && type === 'BOOKMARK' && isBehind(version, this.#state.version ?? ''))
      throw this.#wentBack(version, this.#state.version!);
    // The initial events are not in version order, so a watch cannot be resumed from any of their versions.
    if (!filling && version !== '') this.#state.version = version;
    return false;
  }

  #put(form: ResourceForm<T>, item: unknown): void {
    if (!isObject(item)) throw new MalformedStream('an item that is not an object');
    const metadata = child(item, 'metadata');
    const name = text(metadata, 'name');
    if (name === '') throw new MalformedStream('an object without a name');
    if (this.#listed !== null && ++this.#listed.items > this.#most.items)
      throw this.#endless('items');
    this.#parts.store.put(text(metadata, 'namespace'), name, form.transform(item), this.#out);
    if (this.#out.length >= BATCH_CHANGES) this.#flush();
  }

  get #most(): ListMost {
    return this.#parts.listMost ?? { items: ITEMS_MAX, pages: PAGES_MAX };
  }

  #endless(what: keyof ListMost): ApiFailure {
    const { host } = this.#parts.client;
    return new ApiFailure({
      kind: 'large',
      text: `the API server at ${host} has not ended the ${this.#currentForm().name} list after ${this.#most[what]} ${what}`,
      advice: 'No cluster has that many, so check what answers at that address (a proxy?).',
      retryAfterMs: ENDLESS_PAUSE_MS,
    });
  }

  #complete(version: string): void {
    const { store, log } = this.#parts;
    this.#listed = null;
    store.endList(this.#out);
    this.#flush();
    this.#state.listed(version);
    log.debug(`listed ${store.size} ${this.#currentForm().name}, ${store.bytes >> 10} KiB`);
    this.#good();
    this.#parts.listed();
  }

  #good(): void {
    this.#lastGoodAt = this.#parts.clock.now();
    this.#failures.over();
  }

  #asFailure(error: unknown): ApiFailure {
    if (error instanceof ApiFailure) return error;
    const { client, log } = this.#parts;
    if (error instanceof MalformedStream) {
      return new ApiFailure({
        kind: 'malformed',
        text: `the API server at ${client.host} sent an unexpected reply to "${this.#task('list')}": ${error.message}`,
        cause: error,
      });
    }
    // A bug must not end the watch. It is therefore logged in full, and a new list starts.
    this.#state.version = null;
    log.error(bugText(error));
    return new ApiFailure({
      kind: 'malformed',
      text: `what the API server at ${client.host} sent could not be stored (see above)`,
      cause: error,
    });
  }

  /**
   * Reports a failure if necessary.
   * @returns the number of milliseconds to wait before the next request
   */
  #afterFailure(failure: ApiFailure): number {
    const { clock, log } = this.#parts;
    const { as, waitMs } = this.#state.fail(failure);
    switch (as) {
      case 'detour':
        return waitMs;
      case 'relist':
        log.debug(`${this.#task('watch')}: ${failure.message}; listing again`);
        return waitMs;
      case 'dropped':
        log.debug(`${this.#task('watch')}: ${failure.message}`);
        break;
      case 'failure':
        this.#failures.failed(failure, waitMs, keptText(this.#lastGoodAt, clock.now()));
    }
    this.#parts.failed?.(failure);
    return waitMs;
  }

  /**
   * Delivers changes after each chunk, so that no event has to wait for the next one.
   * @param listSince returns when the list with this body began, or Infinity if it is not a list
   */
  #flushing(inner: JsonStream, listSince: () => number): JsonStream {
    const { client, clock } = this.#parts;
    return {
      push: (chunk) => {
        try {
          inner.push(chunk);
          if (clock.now() - listSince() > LIST_MS)
            throw new ApiFailure({
              kind: 'silent',
              text: `the API server at ${client.host} did not finish the list within ${roundedDuration(LIST_MS)}`,
            });
        } finally {
          this.#flush();
        }
      },
    };
  }

  #flush(): void {
    if (this.#out.length === 0) return;
    const batch = this.#out;
    this.#out = [];
    this.#parts.changes?.(batch);
  }

  #selectors(): Record<string, string> {
    const { labelSelector = '', fieldSelector = '' } = this.#parts.resource;
    return {
      ...(labelSelector === '' ? {} : { labelSelector }),
      ...(fieldSelector === '' ? {} : { fieldSelector }),
    };
  }

  /**
   * True if reading may be slow, because an earlier state is being served. If the server cut the last list short, it
   * may not tolerate a slow reader.
   */
  get #unhurried(): boolean {
    return this.#state.hasListed && this.#state.isHealthy;
  }

  #currentForm(): ResourceForm<T> {
    return this.#parts.resource.forms[this.#state.form]!;
  }

  #task(verb: 'list' | 'watch'): string {
    return `${verb} ${this.#currentForm().name}`;
  }
}

/** client-go's page size. A page of pods takes about 2 MiB on the wire. */
const PAGE_ITEMS = 500;
const BATCH_CHANGES = 500;
/** Maximum number of objects in a list, which is more than six times as many pods as Kubernetes supports. */
const ITEMS_MAX = 1_000_000;
/** Maximum number of pages in a list. The server may make pages smaller than requested, or even empty. */
const PAGES_MAX = 20_000;
/** Delay after an endless list, which costs both sides more than most failures do. */
const ENDLESS_PAUSE_MS = 60_000;
/** Watches last between one and two times this, so that many clients' watches do not all end together. */
const WATCH_SECONDS = 300;
const SHORT_WATCH_MS = 1000;
/** An API server aborts a list after 60 s. */
const LIST_ANSWER_MS = 70_000;
const LIST_SILENCE_MS = 60_000;
/** Time limit for a slow list. The largest clusters take a minute or two. */
const LIST_MS = 15 * 60_000;
/** Bookmarks arrive about once a minute. */
const BOOKMARK_SILENCE_MS = 150_000;
const initialEventsEnd = 'k8s.io/initial-events-end';

function keptText(lastGoodAt: number | null, now: number): string {
  if (lastGoodAt === null) return 'none of them are known yet';
  return `still serving answers from ${roundedDuration(now - lastGoodAt)} ago`;
}
