/**
 * Metrics of the DNS pods: two scrapes of each, some seconds apart, from the pod itself or through
 * the API server.
 */
import { sleep, type Clock } from '../../../server/base/clock.ts';
import { printHostPort } from '../../../server/base/ip.ts';
import type { ApiClient } from '../../../server/kube/api/client.ts';
import { ApiFailure } from '../../../server/kube/api/failure.ts';
import { getText } from '../../../server/kube/api/get-json.ts';
import { Scrape } from '../../../server/metrics/read-exposition.ts';
import { SCRAPE_BYTES_MAX, scrapeUrl } from '../../../server/metrics/scrape-url.ts';
import type { DnsPod } from './pods.ts';
import { METRICS_WAIT_MS } from '../thresholds/cluster.ts';

/** The metrics port of CoreDNS and ndots. */
const USUAL_PORT = 9153;

/** The metrics of one pod. */
export interface Measured {
  readonly pod: DnsPod;
  readonly before: Scrape;
  readonly after: Scrape;
  readonly seconds: number;
}

/** The metrics of all pods. */
export interface Measurement {
  readonly measured: readonly Measured[];
  /** Pods without metrics, and why. */
  readonly without: readonly { readonly pod: DnsPod; readonly why: string }[];
  /** True if any pod was reached at its own address, so this machine is in the pod network. */
  readonly direct: boolean;
  /** The API server's refusal to proxy to pods. */
  readonly refused: ApiFailure | null;
}

/** Parameters of a measurement. */
export interface MeasureParts {
  readonly client: ApiClient;
  readonly clock: Clock;
  /** The time between the two scrapes, milliseconds. */
  readonly forMs: number;
  /** The metrics port of pods that do not declare one. */
  readonly port: number | null;
  readonly signal: AbortSignal;
}

/** Scrapes all pods twice. Rejects only when aborted. */
export async function measure(pods: readonly DnsPod[], parts: MeasureParts): Promise<Measurement> {
  const { clock, forMs, signal } = parts;
  const first = await Promise.all(pods.map((pod) => scrapePod(pod, parts)));
  const done = (): Measurement => ({
    measured: [],
    without: first.map(({ pod, why }) => ({ pod, why: why ?? 'interrupted' })),
    direct: first.some(({ direct }) => direct),
    refused: first.find(({ refused }) => refused !== null)?.refused ?? null,
  });
  if (first.every(({ scrape }) => scrape === null)) return done();
  await sleep(clock, forMs, signal);
  if (signal.aborted) return done();
  const second = await Promise.all(
    first.map((each) => (each.scrape === null ? each : scrapePod(each.pod, parts, each.direct))),
  );
  return {
    ...done(),
    measured: second.flatMap(({ pod, scrape, at }, nth) => {
      const before = first[nth]!;
      if (scrape === null || before.scrape === null) return [];
      return [{ pod, before: before.scrape, after: scrape, seconds: (at - before.at) / 1000 }];
    }),
    without: second.flatMap(({ pod, why }) => (why === null ? [] : [{ pod, why }])),
  };
}

interface Scraped {
  readonly pod: DnsPod;
  readonly scrape: Scrape | null;
  readonly at: number;
  readonly direct: boolean;
  readonly why: string | null;
  readonly refused: ApiFailure | null;
}

/** @param direct whether it was reached at its address before; unknown at first */
async function scrapePod(
  pod: DnsPod,
  { client, clock, port, signal }: MeasureParts,
  direct: boolean | null = null,
): Promise<Scraped> {
  const [address] = pod.addresses;
  const at = pod.metricsPort ?? port ?? USUAL_PORT;
  const found = (scrape: Scrape, isDirect: boolean): Scraped => {
    return { pod, scrape, at: clock.now(), direct: isDirect, why: null, refused: null };
  };
  const none = (why: string, refused: ApiFailure | null = null): Scraped => {
    return { pod, scrape: null, at: 0, direct: direct === true, why, refused };
  };
  if (address === undefined) return none('it has no address');
  let own = '';
  if (direct !== false) {
    try {
      const url = new URL(`http://${printHostPort(address, at)}/metrics`);
      const scrape = await scrapeUrl({
        url,
        waitMs: METRICS_WAIT_MS.direct,
        signal,
        wanted: isWanted,
      });
      if (scrape.size > 0) return found(scrape, true);
      own = 'its address and port do not serve DNS metrics';
    } catch (error) {
      own = (error as Error).message;
    }
  }
  try {
    const scrape = new Scrape(isWanted);
    const name = encodeURIComponent(`${pod.name}:${at}`);
    const request = {
      path: `/api/v1/namespaces/${pod.namespace}/pods/${name}/proxy/metrics`,
      task: 'get pods/proxy',
      waitMs: METRICS_WAIT_MS.proxy,
      bytesMax: SCRAPE_BYTES_MAX,
      // Do not wait for a server that sends a byte now and then.
      signal: AbortSignal.any([signal, AbortSignal.timeout(2 * METRICS_WAIT_MS.proxy)]),
    };
    await getText(client, request, (text) => scrape.push(text));
    if (scrape.end().size > 0) return found(scrape, false);
    return none('its port does not serve DNS metrics');
  } catch (error) {
    if (signal.aborted) throw error;
    if (!(error instanceof ApiFailure)) return none(`${own}; through the API server: too slow`);
    const why = `${own}${own === '' ? '' : '; '}through the API server: ${error.message}`;
    // A pod, or another process at its address, may also answer with 403.
    return none(why, error.kind === 'forbidden' && error.reason !== '' ? error : null);
  }
}

function isWanted(name: string): boolean {
  return /^(coredns|ndots|process)_/.test(name);
}
