/** Metrics of another process over HTTP, as Prometheus fetches them. */
import { printSpan } from '../base/elapsed.ts';
import { Scrape } from './read-exposition.ts';
import { whyFailed } from '../base/why-failed.ts';

/** The most that is read of one scrape, bytes: a server with ten thousand series has 2 MiB. */
export const SCRAPE_BYTES_MAX: number = 64 * 1024 * 1024;

/** What is fetched. */
export interface ScrapeRequest {
  readonly url: URL;
  /** For the whole of it, milliseconds. */
  readonly waitMs: number;
  readonly signal: AbortSignal;
  readonly wanted?: (name: string) => boolean;
}

/** Fetches, and reads while it comes. Rejects with an `Error` that says why there is none. */
export async function scrapeUrl(request: ScrapeRequest): Promise<Scrape> {
  const { url, waitMs, signal, wanted = () => true } = request;
  const over = AbortSignal.any([signal, AbortSignal.timeout(waitMs)]);
  const scrape = new Scrape(wanted);
  try {
    const reply = await fetch(url, { signal: over, redirect: 'error' });
    if (!reply.ok) throw new Error(`HTTP status ${reply.status}`);
    const decoder = new TextDecoder();
    let bytes = 0;
    for await (const chunk of reply.body ?? []) {
      bytes += (chunk as Uint8Array).length;
      if (bytes > SCRAPE_BYTES_MAX) throw new Error(`more than ${SCRAPE_BYTES_MAX >> 20} MiB`);
      scrape.push(decoder.decode(chunk as Uint8Array, { stream: true }));
    }
  } catch (error) {
    const { name, message, cause } = error as Error;
    const text =
      name === 'TimeoutError'
        ? `nothing in ${printSpan(waitMs)}`
        : cause instanceof Error
          ? whyFailed(cause)
          : message;
    throw new Error(text, { cause: error });
  }
  return scrape.end();
}
