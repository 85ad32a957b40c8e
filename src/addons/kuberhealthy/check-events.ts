/** Writes events about checks for `kubectl describe`, using the same reasons as Kuberhealthy 3. */
import type { Clock } from '../../server/base/clock.ts';
import { FailureReport } from '../../server/base/failure-report.ts';
import { child, text } from '../../server/base/json-object.ts';
import { bugText, type Log } from '../../server/base/log.ts';
import type { Random } from '../../server/base/random.ts';
import { Recent } from '../../server/base/recent.ts';
import type { ApiClient } from '../../server/kube/api/client.ts';
import { ApiFailure } from '../../server/kube/api/failure.ts';
import { createObject, patchObject, unlessMissing } from '../../server/kube/api/one-object.ts';
import { fullName, KINDS, type CheckObject } from './check-object.ts';
import { apiTime, type RunResult } from './check-state.ts';
import { shortText } from './error-texts.ts';

/** An event's reason, which people use as a filter. */
export type EventReason =
  | 'PodCreated'
  | 'PodCreateFailed'
  | 'CheckReported'
  | 'CheckReportFailed'
  | 'CheckRunTimedOut'
  | 'CheckRunTimeout'
  | 'CheckPodReaped'
  | 'CheckFailedPodReaped'
  | 'CheckPodExpired';

export interface CheckEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: EventReason;
  readonly message: string;
}

export type RecordEvent = (check: CheckObject, event: CheckEvent) => void;

export function reported({ ok, errors }: RunResult): CheckEvent {
  return ok
    ? { type: 'Normal', reason: 'CheckReported', message: 'check reported OK' }
    : { type: 'Warning', reason: 'CheckReported', message: errors.join('; ') };
}

export interface CheckEventsParts {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Name of this replica. */
  readonly host: string;
}

const WAIT_MS = 10_000;
/** Limit on the number of queued events. Further events are dropped because runs matter more. */
const QUEUE_MAX = 256;
/** Event rate per check: the burst size, and the interval between later events in milliseconds. */
const BURST = 25;
const EACH_MS = 30_000;
/** Characters; the API server's own limit is 1024. */
const MESSAGE_MAX = 1000;
/** Within this many milliseconds, repeated events are counted instead of written again. */
const REPEATS_MS = 600_000;
const REMEMBERED_MAX = 2048;

interface Written {
  readonly name: string;
  readonly count: number;
}

interface Allowance {
  readonly left: number;
  readonly at: number;
}

/** Writes events one at a time, as fast as the API server accepts them. Callers never wait. */
export class CheckEvents {
  readonly #parts: CheckEventsParts;
  readonly #failures: FailureReport;
  readonly #stopping = new AbortController();
  readonly #queue: (readonly [CheckObject, CheckEvent])[] = [];
  readonly #written: Recent<string, Written>;
  /** Remaining allowances of checks with recent events. All other checks have their full allowance. */
  readonly #allowances: Recent<string, Allowance>;
  #writing: Promise<void> | null = null;
  #dropped = 0;

  constructor(parts: CheckEventsParts) {
    this.#parts = parts;
    const { clock, log } = parts;
    this.#failures = new FailureReport({ clock, log, work: 'writing events' });
    this.#written = new Recent(clock, REPEATS_MS, REMEMBERED_MAX);
    this.#allowances = new Recent(clock, BURST * EACH_MS, REMEMBERED_MAX);
  }

  /** The number of events not written because there were too many or the API server rejected them. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Records an event on a check; never throws. */
  readonly record: RecordEvent = (check, event) => {
    if (this.#queue.length >= QUEUE_MAX || !this.#isAllowed(check)) {
      this.#dropped++;
      return;
    }
    // Shortened so that the queue does not hold long reports.
    this.#queue.push([check, { ...event, message: shortText(event.message, MESSAGE_MAX) }]);
    this.#writing ??= this.#writeAll();
  };

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#writing;
  }

  #isAllowed({ uid }: CheckObject): boolean {
    const now = this.#parts.clock.now();
    const known = this.#allowances.get(uid);
    const left = Math.min(BURST, (known?.left ?? BURST) + (now - (known?.at ?? now)) / EACH_MS);
    this.#allowances.put(uid, { left: Math.max(0, left - 1), at: now });
    return left >= 1;
  }

  async #writeAll(): Promise<void> {
    const { signal } = this.#stopping;
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      try {
        await this.#write(...next);
        this.#failures.over();
      } catch (error) {
        if (signal.aborted) return;
        this.#dropped++;
        if (error instanceof ApiFailure) this.#failures.failed(error, 0, 'checks continue without');
        else this.#parts.log.error(`${fullName(next[0])}: ${bugText(error)}`);
      }
    }
    this.#writing = null;
  }

  async #write(check: CheckObject, { type, reason, message }: CheckEvent): Promise<void> {
    const { client, clock, random, host } = this.#parts;
    const { namespace, name, uid, kind, objectVersion } = check;
    const key = `${uid} ${reason} ${message}`;
    const now = apiTime(clock.wall());
    const directory = `/api/v1/namespaces/${namespace}/events`;
    const asked = { waitMs: WAIT_MS, signal: this.#stopping.signal };
    const known = this.#written.get(key);
    this.#written.delete(key);
    if (known !== undefined) {
      const counted = { ...known, count: known.count + 1 };
      const request = { ...asked, path: `${directory}/${known.name}`, task: 'patch events' };
      const patch = { count: counted.count, lastTimestamp: now };
      // The API server deletes old events, so there may be nothing to patch.
      if ((await unlessMissing(() => patchObject(client, request, patch))) !== null) {
        this.#written.put(key, counted);
        return;
      }
    }
    const request = { ...asked, path: directory, task: 'create events' };
    const made = await createObject(client, request, {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: {
        namespace,
        name: `${name.slice(0, 200)}.${hex(random)}${hex(random)}`,
      },
      involvedObject: { ...KINDS[kind], namespace, name, uid, resourceVersion: objectVersion },
      type,
      reason,
      message,
      source: { component: 'kuberhealthy', host },
      firstTimestamp: now,
      lastTimestamp: now,
      count: 1,
    });
    const written = text(child(made, 'metadata'), 'name');
    this.#written.put(key, { name: written, count: 1 });
  }
}

function hex(random: Random): string {
  return random
    .integer(2 ** 32)
    .toString(16)
    .padStart(8, '0');
}
