/** Metrics that are at hand as text. */
import { Scrape } from '../../src/metrics/read-exposition.ts';

export function readScrape(text: string): Scrape {
  const scrape = new Scrape(() => true);
  scrape.push(text);
  return scrape.end();
}
