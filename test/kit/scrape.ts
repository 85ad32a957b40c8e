/** Parses metrics from a given text. */
import { Scrape } from '../../src/server/metrics/read-exposition.ts';

/** All series in a Prometheus text. */
export function readScrape(text: string): Scrape {
  const scrape = new Scrape(() => true);
  scrape.push(text);
  return scrape.end();
}
