/** Scrapes another process over HTTP, as Prometheus does. */
import { printSpan } from '../base/elapsed.ts';
import { Scrape } from './read-exposition.ts';
import { whyFailed } from '../base/why-failed.ts';

/** The most bytes read of one scrape; a server with ten thousand series has 2 MiB. */
export const SCRAPE_BYTES_MAX: number = 64 * 1024 * 1024;

/** What is fetched. */
export interface ScrapeRequest {
  readonly url: URL;
  /** Time limit for the whole scrape, in milliseconds. */
  readonly waitMs: number;
  readonly signal: AbortSignal;
  readonly wanted?: (name: string) => boolean;
}

/**
 * Fetches a page of metrics and parses it while it is received. Rejects with an `Error` that says
 * what failed.
 */
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
          ? cause.message === 'bad port'
            ? 'no HTTP client asks this port, which belongs to another protocol'
            : whyFailed(cause)
          : message;
    throw new Error(text, { cause: error });
  }
  return scrape.end();
}
