/** The fake API server's watches. */
import type { ServerResponse } from 'node:http';
import type { Clock, Timer } from '../../../src/server/base/clock.ts';
import { groupVersion, storageName, type ServedResource } from './resources.ts';
import {
  serve,
  serveDeleted,
  type Matches,
  type Store,
  type StoreEvent,
  type Stored,
} from './store.ts';

/** A watch's subject, and the destination of its events. */
export interface WatchParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly resource: ServedResource;
  readonly reply: ServerResponse;
  /** Only objects in this namespace, or '' for all namespaces. */
  readonly namespace: string;
  readonly matches: Matches;
  readonly bookmarks: boolean;
  readonly timeoutMs: number;
  readonly ended: () => void;
}

const bookmarkEveryMs = 60_000;

/** An open watch. Sends each change in the store as a JSON document. */
export class Watch {
  readonly resource: string;
  readonly #parts: WatchParts;
  readonly #stopListening: () => void;
  readonly #timers: Timer[] = [];
  /** The client has all events before this revision. */
  #sent: number;
  #frozen = false;

  /** @param from events after this revision are sent */
  constructor(parts: WatchParts, from: number) {
    this.#parts = parts;
    this.resource = parts.resource.plural;
    this.#sent = from;
    this.#stopListening = parts.store.listen((event) => {
      if (event.resource === storageName(parts.resource)) this.event(event);
    });
    this.#timers.push(parts.clock.after(parts.timeoutMs, () => this.end()));
    if (parts.bookmarks) this.#beat();
    parts.reply.on('close', () => this.#close());
  }

  event({ before, after, revision }: StoreEvent): void {
    if (this.#frozen || revision <= this.#sent) return;
    this.#sent = revision;
    const was = before !== null && this.#wants(before);
    const is = after !== null && this.#wants(after);
    const { version, kind } = this.#form();
    // An object that no longer matches the selector is reported to this client as deleted.
    if (is) this.#send(was ? 'MODIFIED' : 'ADDED', serve(after, version, kind));
    else if (was) this.#send('DELETED', serveDeleted(before, revision, version, kind));
  }

  /** Sends the current state as ADDED events. With `mark`, they are followed by a streaming list's bookmark. */
  initial(objects: readonly Stored[], mark: boolean): void {
    const { version, kind } = this.#form();
    for (const one of objects) {
      if (this.#wants(one)) this.#send('ADDED', serve(one, version, kind));
    }
    if (mark) this.bookmark({ 'k8s.io/initial-events-end': 'true' });
  }

  bookmark(annotations?: Readonly<Record<string, string>>): void {
    const { revision } = this.#parts.store;
    if (this.#frozen || revision < this.#sent) return;
    const { version, kind } = this.#form();
    this.#sent = revision;
    this.#send(
      'BOOKMARK',
      JSON.stringify({
        kind,
        apiVersion: version,
        metadata: { resourceVersion: String(this.#sent), creationTimestamp: null, annotations },
      }),
    );
  }

  /** The server closes the watch afterwards, as the real one does. */
  error(status: object): void {
    this.#send('ERROR', JSON.stringify(status));
    this.end();
  }

  end(): void {
    this.#parts.reply.end();
  }

  drop(): void {
    this.#parts.reply.destroy();
  }

  /** From now on, neither sends anything nor closes the connection, like a dead peer. */
  freeze(): void {
    this.#frozen = true;
    for (const timer of this.#timers) timer.cancel();
  }

  raw(text: string): void {
    this.#parts.reply.write(text);
  }

  #beat(): void {
    this.#timers.push(
      this.#parts.clock.after(bookmarkEveryMs, () => {
        this.bookmark();
        this.#beat();
      }),
    );
  }

  #wants(one: Stored): boolean {
    const { namespace, matches } = this.#parts;
    if (namespace !== '' && one.object.metadata.namespace !== namespace) return false;
    return matches(one.object);
  }

  #form(): { version: string; kind: string } {
    return { version: groupVersion(this.#parts.resource), kind: this.#parts.resource.kind };
  }

  #send(type: string, object: string): void {
    if (!this.#frozen && !this.#parts.reply.writableEnded)
      this.#parts.reply.write(`{"type":"${type}","object":${object}}\n`);
  }

  #close(): void {
    this.#stopListening();
    for (const timer of this.#timers) timer.cancel();
    this.#parts.ended();
  }
}
