/** Metrics that are at hand as text. */
import { Scrape } from '../../src/server/metrics/read-exposition.ts';

/** All series of a text in the form of Prometheus. */
export function readScrape(text: string): Scrape {
  const scrape = new Scrape(() => true);
  scrape.push(text);
  return scrape.end();
}
