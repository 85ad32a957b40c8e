/** A node cache's metrics, and their address. */
import { answerText } from '../base/http-answer.ts';
import type { Log } from '../base/log.ts';
import { ScrapedServer } from '../base/scraped-server.ts';
import { whyFailed } from '../base/why-failed.ts';
import { Collection } from '../metrics/collection.ts';
import { contentTypes, formatFor } from '../metrics/formats.ts';
import { SharedRegistry } from '../metrics/shared-registry.ts';
import { setupErrors, type SetupError } from './node-network.ts';

export interface MetricsAddress {
  readonly host: string;
  readonly port: number;
}

/** The metrics on port 9353, which are NodeLocal DNSCache's and those for the lease. */
export class SetupMetrics {
  readonly #collection = new Collection();
  readonly #registry = new SharedRegistry((event) => this.#collection.add('main', event));
  readonly #errors = this.#registry.counter(
    'coredns_nodecache_setup_errors_total',
    'The number of errors during periodic network setup for node-cache',
    ['errortype'],
  );
  readonly #repairs = this.#registry.counter(
    'ndots_nodecache_repairs_total',
    'Number of times that the interface or the rules were restored after another program removed them.',
    ['what'],
  );
  readonly #answers = this.#registry.gauge(
    'ndots_nodecache_answers',
    '1 if the cache answers its own heartbeat at this address, 0 if the address is released.',
    ['address'],
  );
  readonly #lapses = this.#registry.counter(
    'ndots_nodecache_lapses_total',
    'Number of times that the cache stopped answering its own heartbeat at this address.',
    ['address'],
  );
  readonly #handovers = this.#registry.counter(
    'ndots_nodecache_handovers_total',
    'Takeovers by this process from another one (in), or by another one from it (out).',
    ['direction'],
  );
  #server: ScrapedServer | null = null;

  constructor() {
    for (const kind of setupErrors) this.#errors.with(kind);
    for (const what of ['interface', 'rules']) this.#repairs.with(what);
    for (const direction of ['in', 'out']) this.#handovers.with(direction);
  }

  failed(kind: SetupError): void {
    this.#errors.with(kind).add(1);
  }

  repaired(what: 'interface' | 'rules'): void {
    this.#repairs.with(what).add(1);
  }

  answers(address: string, does: boolean): void {
    this.#answers.with(address).set(does ? 1 : 0);
    this.#lapses.with(address).add(does ? 0 : 1);
  }

  handedOver(direction: 'in' | 'out'): void {
    this.#handovers.with(direction).add(1);
  }

  /** Serves the metrics. As in NodeLocal DNSCache, an unavailable address is only logged. */
  async serve({ host, port }: MetricsAddress, log: Log): Promise<void> {
    this.#server = new ScrapedServer({
      probes: [],
      answer: (path, request, response, pages) => {
        if (path !== '/metrics') return answerText(response, 404, '404 page not found\n');
        const format = formatFor(request.headers.accept);
        pages.send(request, response, format, contentTypes[format], () =>
          this.#collection.scrape(format),
        );
      },
    });
    try {
      // The previous process, which this one is replacing, still has the port.
      await this.#server.listen(host, port, true);
    } catch (error) {
      log.error(`Failed to start metrics handler: ${whyFailed(error)}`);
    }
    this.#server.unref();
  }

  close(): void {
    void this.#server?.close();
  }
}
