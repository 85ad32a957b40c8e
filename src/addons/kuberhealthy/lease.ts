/**
 * Leader election among replicas by means of a Lease from coordination.k8s.io. It is compatible with client-go, so
 * other programs may hold the lease too. A lease is considered expired if this process has not seen it change for long
 * enough. The machines' clocks may therefore differ.
 */
import { sleep, type Clock, type Timer } from '../../server/base/clock.ts';
import { FailureReport } from '../../server/base/failure-report.ts';
import { child, text, type JsonObject } from '../../server/base/json-object.ts';
import type { Log } from '../../server/base/log.ts';
import type { Random } from '../../server/base/random.ts';
import type { ApiClient } from '../../server/kube/api/client.ts';
import { ApiFailure } from '../../server/kube/api/failure.ts';
import { createObject, findObject, replaceObject } from '../../server/kube/api/one-object.ts';

export interface LeaseParts {
  readonly client: ApiClient;
  readonly namespace: string;
  readonly name: string;
  /** This replica's name, which must be unique. */
  readonly identity: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/** client-go's times in milliseconds: the lease duration, how long renewal may keep failing, and the retry interval. */
const LASTS_MS = 15_000;
const RENEW_WITHIN_MS = 10_000;
const RETRY_MS = 2000;
/** Maximum wait for the API server, in milliseconds. */
const WAIT_MS = 2 * RETRY_MS;

/** Acquires the lease when it is free, renews it, and releases it when done. */
export class Lease {
  readonly #parts: LeaseParts;
  readonly #failures: FailureReport;
  #holder = '';
  /** The last state that was read, and the time when it last changed, in milliseconds on the monotonic clock. */
  #seen = '';
  #changedAt = -Infinity;

  constructor(parts: LeaseParts) {
    this.#parts = parts;
    const { clock, log, namespace, name } = parts;
    this.#failures = new FailureReport({ clock, log, work: `the lease ${namespace}/${name}` });
  }

  /** The lease's holder when it was last read, or `''` if there was none. */
  get holder(): string {
    return this.#holder;
  }

  /**
   * Runs until the signal fires. Calls `lead` each time this replica acquires the lease, passing a signal that fires
   * when the lease is lost. Waits for `lead` to finish before releasing the lease, so the next leader starts after
   * that.
   */
  async run(signal: AbortSignal, lead: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { clock, random } = this.#parts;
    while (!signal.aborted) {
      if (await this.#try(signal)) await this.#hold(signal, lead);
      else await sleep(clock, RETRY_MS + random.integer(RETRY_MS / 4), signal);
    }
  }

  async #hold(signal: AbortSignal, lead: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { clock, log, identity, namespace, name } = this.#parts;
    log.info(`${identity} is the leader and holds the lease ${namespace}/${name}`);
    const lost = new AbortController();
    const ended = AbortSignal.any([signal, lost.signal]);
    const led = lead(ended);
    // Do this regardless of any pending request, because other replicas will not wait any longer for this one.
    const giveUp = (): Timer => clock.after(RENEW_WITHIN_MS, () => lost.abort());
    let limit = giveUp();
    while (!ended.aborted) {
      await sleep(clock, RETRY_MS, ended);
      if (ended.aborted) break;
      if (await this.#try(ended)) {
        limit.cancel();
        limit = giveUp();
      } else if (this.#holder !== identity) lost.abort();
    }
    limit.cancel();
    await led;
    if (!signal.aborted)
      log.warning(`${identity} is no longer the leader because it lost the lease`);
    else if (this.#holder === identity) await this.#release();
  }

  /** @returns true if the lease is held now */
  async #try(signal: AbortSignal): Promise<boolean> {
    try {
      const held = await this.#take(signal);
      this.#failures.over();
      return held;
    } catch (error) {
      if (signal.aborted) return false;
      if (!(error instanceof ApiFailure)) throw error;
      // 409: another replica was faster, which is normal.
      if (error.status !== 409)
        this.#failures.failed(error, RETRY_MS, 'another replica may still acquire it');
      return false;
    }
  }

  async #take(signal: AbortSignal): Promise<boolean> {
    const { clock, identity } = this.#parts;
    const lease = await this.#read(signal);
    const spec = child(lease ?? {}, 'spec');
    const holder = text(spec, 'holderIdentity');
    const now = JSON.stringify(spec);
    if (now !== this.#seen) this.#changedAt = clock.now();
    this.#seen = now;
    this.#holder = holder;
    const seconds = Number(spec['leaseDurationSeconds'] ?? 0);
    const isFree = holder === '' || clock.now() - this.#changedAt >= seconds * 1000;
    if (holder !== identity && !isFree) return false;
    const at = microTime(clock.wall());
    const isSame = holder === identity;
    const next = {
      ...spec,
      holderIdentity: identity,
      leaseDurationSeconds: LASTS_MS / 1000,
      acquireTime: isSame ? (spec['acquireTime'] ?? at) : at,
      renewTime: at,
      leaseTransitions: Number(spec['leaseTransitions'] ?? 0) + (isSame || lease === null ? 0 : 1),
    };
    await this.#write(lease, next, signal);
    this.#holder = identity;
    return true;
  }

  /** Releases the lease, so that the next leader does not have to wait until it expires. */
  async #release(): Promise<void> {
    const signal = AbortSignal.timeout(RETRY_MS);
    try {
      const lease = await this.#read(signal);
      const spec = child(lease ?? {}, 'spec');
      if (lease === null || text(spec, 'holderIdentity') !== this.#parts.identity) return;
      await this.#write(lease, { ...spec, holderIdentity: '', leaseDurationSeconds: 1 }, signal);
    } catch {
      // If that fails, it expires.
    }
  }

  get #directory(): string {
    return `/apis/coordination.k8s.io/v1/namespaces/${this.#parts.namespace}/leases`;
  }

  #read(signal: AbortSignal): Promise<JsonObject | null> {
    const { client, name } = this.#parts;
    const path = `${this.#directory}/${name}`;
    return findObject(client, { path, task: `get leases ${name}`, waitMs: WAIT_MS, signal });
  }

  async #write(lease: JsonObject | null, spec: JsonObject, signal: AbortSignal): Promise<void> {
    const { client, name, namespace } = this.#parts;
    const asked = { waitMs: WAIT_MS, signal };
    if (lease === null) {
      const made = {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name, namespace },
      };
      const request = { ...asked, path: this.#directory, task: `create leases ${name}` };
      await createObject(client, request, { ...made, spec });
    } else {
      const request = {
        ...asked,
        path: `${this.#directory}/${name}`,
        task: `update leases ${name}`,
      };
      await replaceObject(client, request, { ...lease, spec });
    }
    this.#seen = JSON.stringify(spec);
    this.#changedAt = this.#parts.clock.now();
  }
}

/** Formats a time as the API's MicroTime. */
function microTime(wall: number): string {
  return new Date(wall).toISOString().replace('Z', '000Z');
}
