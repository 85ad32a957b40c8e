/** Lists a check's events. Results are cached to spare the API server, because any client may request them. */
import type { Clock } from '../../server/base/clock.ts';
import { asObject, children, text } from '../../server/base/json-object.ts';
import { Recent } from '../../server/base/recent.ts';
import type { ApiClient } from '../../server/kube/api/client.ts';
import { getJson } from '../../server/kube/api/get-json.ts';
import type { CheckWatch } from './check-watch.ts';

/** An event, with Kuberhealthy 3's field names. */
export interface EventSummary {
  readonly message: string;
  readonly reason: string;
  readonly type: string;
  /** Seconds since 1970, or absent if unknown. */
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
/** Limit on events per check, in the order the API server returns them. */
const EVENTS_MAX = 200;
/** Number of checks with cached events. */
const REMEMBERED_MAX = 256;

export class EventList {
  readonly #parts: EventListParts;
  readonly #known: Recent<string, Promise<readonly EventSummary[]>>;

  constructor(parts: EventListParts) {
    this.#parts = parts;
    this.#known = new Recent(parts.clock, FRESH_MS, REMEMBERED_MAX);
  }

  /** Lists a HealthCheck's events. Empty if it does not exist. Rejects with an `ApiFailure`, or when aborted. */
  of(namespace: string, name: string, signal: AbortSignal): Promise<readonly EventSummary[]> {
    if (this.#parts.watch.get('healthcheck', namespace, name) === null) return Promise.resolve([]);
    const key = `${namespace}/${name}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const events = this.#list(namespace, name, signal);
    // Failures are cached as well, so that reloading a page does not multiply requests to the API server.
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
