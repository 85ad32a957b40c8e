/** Sends pages to clients that may be slow or numerous. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { builtins } from './builtins.ts';
import type { Clock } from './clock.ts';
import { acceptsGzip } from './http-answer.ts';
import { Recent } from './recent.ts';

/** Milliseconds for which a rendered page is reused, regardless of the number of clients. */
const FRESH_MS = 1000;
/** Number of different pages cached for that long. */
const REMEMBERED_MAX = 16;
/** Maximum number of bytes in pages that clients have not finished reading. */
const UNREAD_MAX = 32 * 1024 * 1024;

/** A rendered page, which is compressed at most once, and only if a client accepts that. */
interface MadePage {
  readonly plain: Buffer;
  packed: Promise<Buffer> | null;
}

/**
 * Renders each page at most once a second and sends the same bytes to all clients. The total size of pages in transit
 * is limited. Beyond the limit, the response that has been unread longest is cut off.
 */
export class PageSender {
  readonly #unreadMax: number;
  readonly #made: Recent<string, MadePage>;
  /** Oldest first. */
  readonly #unread = new Map<ServerResponse, number>();
  #bytes = 0;

  constructor(clock: Clock, unreadMax: number = UNREAD_MAX) {
    this.#made = new Recent(clock, FRESH_MS, REMEMBERED_MAX);
    this.#unreadMax = unreadMax;
  }

  /**
   * Sends a page, compressed if the client accepts gzip.
   * @param key identifies the page
   */
  send(
    request: Pick<IncomingMessage, 'headers'>,
    response: ServerResponse,
    key: string,
    type: string,
    make: () => string | Buffer,
  ): void {
    const page = this.#page(key, make);
    if (!acceptsGzip(request)) {
      this.#answer(response, page.plain, { 'content-type': type });
      return;
    }
    page.packed ??= packed(page.plain);
    void page.packed.then(
      (bytes) =>
        this.#answer(response, bytes, { 'content-type': type, 'content-encoding': 'gzip' }),
      () => this.#answer(response, page.plain, { 'content-type': type }),
    );
  }

  #answer(response: ServerResponse, body: Buffer, headers: Record<string, string>): void {
    if (response.destroyed) return;
    this.#bytes += body.length;
    this.#unread.set(response, body.length);
    response.once('close', () => this.#read(response));
    for (const oldest of this.#unread.keys()) {
      if (this.#bytes <= this.#unreadMax || oldest === response) break;
      this.#read(oldest);
      oldest.destroy();
    }
    response.writeHead(200, { ...headers, 'content-length': body.length }).end(body);
  }

  #read(response: ServerResponse): void {
    this.#bytes -= this.#unread.get(response) ?? 0;
    this.#unread.delete(response);
  }

  #page(key: string, make: () => string | Buffer): MadePage {
    const known = this.#made.get(key);
    if (known !== undefined) return known;
    const body = make();
    const page = { plain: typeof body === 'string' ? Buffer.from(body) : body, packed: null };
    this.#made.put(key, page);
    return page;
  }
}

function packed(plain: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    builtins.zlib().gzip(plain, (error, bytes) => {
      if (error === null) resolve(bytes);
      else reject(error);
    });
  });
}
