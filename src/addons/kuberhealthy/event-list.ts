/** The events of a check. Any client may request them, so the API server is queried only occasionally. */
import type { Clock } from '../../server/base/clock.ts';
import { asObject, children, text } from '../../server/base/json-object.ts';
import { Recent } from '../../server/base/recent.ts';
import type { ApiClient } from '../../server/kube/api/client.ts';
import { getJson } from '../../server/kube/api/get-json.ts';
import type { CheckWatch } from './check-watch.ts';

/** One event, with the fields of Kuberhealthy 3. */
export interface EventSummary {
  readonly message: string;
  readonly reason: string;
  readonly type: string;
  /** Seconds since 1970; absent: it has none. */
  readonly lastTimestamp?: number;
}

export interface EventListParts {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly watch: Pick<CheckWatch, 'get'>;
}

/** Lifetime of a cached list, milliseconds. */
const FRESH_MS = 5000;
const WAIT_MS = 10_000;
/** Of one check; the API server's first ones. */
const EVENTS_MAX = 200;
/** Checks whose events are remembered. */
const REMEMBERED_MAX = 256;

/** Lists events of checks that are there. */
export class EventList {
  readonly #parts: EventListParts;
  readonly #known: Recent<string, Promise<readonly EventSummary[]>>;

  constructor(parts: EventListParts) {
    this.#parts = parts;
    this.#known = new Recent(parts.clock, FRESH_MS, REMEMBERED_MAX);
  }

  /**
   * The events of a HealthCheck; empty if it does not exist. Rejects with an `ApiFailure`, or when
   * aborted.
   */
  of(namespace: string, name: string, signal: AbortSignal): Promise<readonly EventSummary[]> {
    if (this.#parts.watch.get('healthcheck', namespace, name) === null) return Promise.resolve([]);
    const key = `${namespace}/${name}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const events = this.#list(namespace, name, signal);
    // Failures are remembered, too: pages that are loaded again and again do not ask the API server as often.
    this.#known.put(key, events);
    return events;
  }

  async #list(
    namespace: string,
    name: string,
    signal: AbortSignal,
  ): Promise<readonly EventSummary[]> {
    const listed = await getJson(this.#parts.client, {
      path: `/api/v1/namespaces/${namespace}/events`,
      query: {
        fieldSelector: `involvedObject.name=${name},involvedObject.kind=HealthCheck`,
        limit: String(EVENTS_MAX),
      },
      task: 'list events',
      waitMs: WAIT_MS,
      signal,
    });
    return children(asObject(listed), 'items').map((event) => {
      const at = Date.parse(text(event, 'lastTimestamp'));
      return {
        message: text(event, 'message'),
        reason: text(event, 'reason'),
        type: text(event, 'type'),
        ...(Number.isFinite(at) && { lastTimestamp: Math.floor(at / 1000) }),
      };
    });
  }
}
