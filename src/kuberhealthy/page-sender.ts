/** Sends pages to readers that may be slow or many. */
import type { ServerResponse } from 'node:http';
import type { Clock } from '../base/clock.ts';
import { Recent } from '../base/recent.ts';

/** A page is made anew so often, milliseconds, however many want it. */
const FRESH_MS = 1000;
/** Different pages that are remembered for that long. */
const REMEMBERED_MAX = 16;
/** Of pages that have not been read to their end. */
const UNREAD_MAX = 32 * 1024 * 1024;

/** Sends pages within a bound for all that are on their way: beyond it the one is cut off that has been so for longest. */
export class PageSender {
  readonly #unreadMax: number;
  readonly #made: Recent<string, Buffer>;
  /** The oldest first. */
  readonly #unread = new Map<ServerResponse, number>();
  #bytes = 0;

  constructor(clock: Clock, unreadMax: number = UNREAD_MAX) {
    this.#made = new Recent(clock, FRESH_MS, REMEMBERED_MAX);
    this.#unreadMax = unreadMax;
  }

  /**
   * Answers with a page.
   * @param key what page it is: the same is not made twice in a second
   */
  send(response: ServerResponse, key: string, type: string, make: () => string): void {
    const body = this.#body(key, make);
    this.#bytes += body.length;
    this.#unread.set(response, body.length);
    response.once('close', () => this.#read(response));
    for (const oldest of this.#unread.keys()) {
      if (this.#bytes <= this.#unreadMax || oldest === response) break;
      this.#read(oldest);
      oldest.destroy();
    }
    response.writeHead(200, { 'content-type': type, 'content-length': body.length }).end(body);
  }

  #read(response: ServerResponse): void {
    this.#bytes -= this.#unread.get(response) ?? 0;
    this.#unread.delete(response);
  }

  #body(key: string, make: () => string): Buffer {
    const known = this.#made.get(key);
    if (known !== undefined) return known;
    const body = Buffer.from(make());
    this.#made.put(key, body);
    return body;
  }
}
