/** Metrics from a given text. */
import { Scrape } from '../../src/server/metrics/read-exposition.ts';

/** All series of a text in Prometheus format. */
export function readScrape(text: string): Scrape {
  const scrape = new Scrape(() => true);
  scrape.push(text);
  return scrape.end();
}
