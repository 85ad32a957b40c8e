/** Scrapes another process over HTTP, like Prometheus. */
import { systemClock } from '../base/clock.ts';
import { printSpan } from '../base/elapsed.ts';
import { sendHttp } from '../base/http-request.ts';
import { Scrape } from './read-exposition.ts';
import { whyFailed } from '../base/why-failed.ts';

/** Maximum number of bytes read per scrape. A server with ten thousand series has 2 MiB. */
export const SCRAPE_BYTES_MAX: number = 64 * 1024 * 1024;

export interface ScrapeRequest {
  readonly url: URL;
  /** Timeout for the whole scrape. */
  readonly waitMs: number;
  readonly signal: AbortSignal;
  readonly wanted?: (name: string) => boolean;
}

/** Fetches a page of metrics and parses it as it arrives. Rejects with an `Error` that describes the failure. */
export async function scrapeUrl(request: ScrapeRequest): Promise<Scrape> {
  const { url, waitMs, signal, wanted = () => true } = request;
  const scrape = new Scrape(wanted);
  const decoder = new TextDecoder();
  const failed = (status: number): void => {
    if (status < 200 || status > 299) throw new Error(`HTTP status ${status}`);
  };
  try {
    const { status } = await sendHttp({
      url,
      options: { signal },
      clock: systemClock,
      waitMs,
      late: `nothing in ${printSpan(waitMs)}`,
      bytesMax: SCRAPE_BYTES_MAX,
      tooLong: `more than ${SCRAPE_BYTES_MAX >> 20} MiB`,
      take(piece, answered) {
        failed(answered);
        scrape.push(decoder.decode(piece, { stream: true }));
      },
    });
    failed(status);
  } catch (error) {
    throw new Error(whyFailed(error), { cause: error });
  }
  return scrape.end();
}
