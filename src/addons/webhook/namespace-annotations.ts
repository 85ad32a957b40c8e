/** Fetches namespace annotations one by one and caches them briefly. */
import type { Clock } from '../../server/base/clock.ts';
import { FailureReport } from '../../server/base/failure-report.ts';
import { child, textMap } from '../../server/base/json-object.ts';
import type { Log } from '../../server/base/log.ts';
import type { ApiClient } from '../../server/kube/api/client.ts';
import { ApiFailure } from '../../server/kube/api/failure.ts';
import { getObject } from '../../server/kube/api/one-object.ts';

/** Cache lifetime in milliseconds. A changed annotation may take this long to have an effect. */
const FRESH_MS = 10_000;
/** Timeout for the API server, in milliseconds. Pod creation is blocked until the reply. */
const WAIT_MS = 500;
/** Cache size, beyond which the least recently used namespace is evicted. */
const NAMESPACES_MAX = 10_000;

export type Annotations = Readonly<Record<string, string>>;

const none: Annotations = Object.freeze({});

/**
 * Caches annotations by namespace. Never fails, because a namespace that cannot be read keeps its previous annotations,
 * or has none.
 */
export class NamespaceAnnotations {
  readonly #client: ApiClient;
  readonly #clock: Clock;
  readonly #known = new Map<string, { readonly at: number; readonly annotations: Annotations }>();
  readonly #asked = new Map<string, Promise<Annotations>>();
  readonly #failures: FailureReport;

  constructor(client: ApiClient, clock: Clock, log: Log) {
    this.#client = client;
    this.#clock = clock;
    this.#failures = new FailureReport({ log, clock, work: 'the annotations of namespaces' });
  }

  /** A namespace's annotations. Concurrent calls share one request to the API server. */
  of(namespace: string): Promise<Annotations> {
    const known = this.#known.get(namespace);
    if (known !== undefined && this.#clock.now() - known.at < FRESH_MS)
      return Promise.resolve(known.annotations);
    const asked = this.#asked.get(namespace) ?? this.#read(namespace, known?.annotations ?? none);
    this.#asked.set(namespace, asked);
    return asked;
  }

  async #read(namespace: string, before: Annotations): Promise<Annotations> {
    let annotations = before;
    try {
      const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}`;
      const signal = AbortSignal.timeout(WAIT_MS);
      const found = await getObject(this.#client, {
        path,
        task: `get namespaces ${namespace}`,
        waitMs: WAIT_MS,
        signal,
      });
      annotations = textMap(child(found, 'metadata'), 'annotations');
      this.#failures.over();
    } catch (error) {
      this.#tell(error);
    } finally {
      this.#asked.delete(namespace);
    }
    this.#known.delete(namespace);
    this.#known.set(namespace, { at: this.#clock.now(), annotations });
    if (this.#known.size > NAMESPACES_MAX) this.#known.delete(this.#known.keys().next().value!);
    return annotations;
  }

  /**
   * Logs the failure.
   * @throws errors other than API server failures
   */
  #tell(error: unknown): void {
    const kept = 'pods get only their own settings';
    if (error instanceof ApiFailure) return this.#failures.failed(error, FRESH_MS, kept);
    if (!(error instanceof Error) || error.name !== 'TimeoutError') throw error;
    const late = { kind: 'silent', message: `no reply in ${WAIT_MS} ms`, advice: '' };
    this.#failures.failed(late, FRESH_MS, kept);
  }
}
