/** The checks of a cluster as they are now: its KuberhealthyChecks with their states, and its HealthChecks, listed and watched. */
import { sleep, type Clock } from '../base/clock.ts';
import { FailureReport } from '../base/failure-report.ts';
import { bugText, type Log } from '../base/log.ts';
import type { Random } from '../base/random.ts';
import type { ApiClient } from '../kube/api/client.ts';
import { ApiFailure } from '../kube/api/failure.ts';
import { getJson } from '../kube/api/get-json.ts';
import { child, text, type JsonObject } from '../kube/api/json-object.ts';
import { Reflector } from '../kube/api/reflector.ts';
import { JsonStore, withoutManagedFields, type JsonChange } from '../kube/store/json-store.ts';
import {
  fullName,
  readHealthCheck,
  readKhCheck,
  type CheckObject,
  type Version,
} from './check-object.ts';

/** The kinds of objects, as the API has them. */
export const RESOURCES = {
  khchecks: { group: 'comcast.github.io', version: 'v1' },
  khstates: { group: 'comcast.github.io', version: 'v1' },
  healthchecks: { group: 'kuberhealthy.github.io', version: 'v2' },
} as const;

/** One of them. */
export type ResourceName = keyof typeof RESOURCES;

/** Which kinds each version of Kuberhealthy has. */
const ofVersion: Readonly<Record<Version, readonly ResourceName[]>> = {
  2: ['khchecks', 'khstates'],
  3: ['healthchecks'],
};

/** What watching takes. */
export interface CheckWatchParts {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Whose checks count; `''`: those of all namespaces. */
  readonly namespace: string;
}

/** So often is asked whether the kinds that were not there are by now. */
const LOOK_EVERY_MS = 60_000;
const RETRY_MS = 5000;
const WAIT_MS = 10_000;

/** The path of a kind of objects in a namespace; `''`: in all. */
export function resourcePath(resource: ResourceName, namespace: string): string {
  const { group, version } = RESOURCES[resource];
  const within = namespace === '' ? '' : `/namespaces/${namespace}`;
  return `/apis/${group}/${version}${within}/${resource}`;
}

/** Follows the kinds that the cluster has. */
export class CheckWatch {
  readonly #parts: CheckWatchParts;
  readonly #stores: Readonly<Record<ResourceName, JsonStore>> = {
    khchecks: new JsonStore(),
    khstates: new JsonStore(),
    healthchecks: new JsonStore(),
  };
  readonly #reflectors: Reflector<JsonObject, JsonChange>[] = [];
  readonly #followed = new Set<Version>();
  readonly #listed = new Set<ResourceName>();
  readonly #checks = new Map<string, CheckObject>();
  readonly #runs = new Map<string, string>();
  readonly #sightings = new Map<string, Sighting>();
  readonly #stopping = new AbortController();
  #looked = false;

  constructor(parts: CheckWatchParts) {
    this.#parts = parts;
  }

  start(): void {
    void this.#discover();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#reflectors.map((reflector) => reflector.stop()));
  }

  /** Whether all that the cluster has is known here. */
  get isSynced(): boolean {
    const wanted = [...this.#followed].flatMap((version) => ofVersion[version]);
    return this.#looked && wanted.every((resource) => this.#listed.has(resource));
  }

  /** The versions whose kinds the cluster has. */
  get versions(): readonly Version[] {
    return [...this.#followed];
  }

  checks(): Iterable<CheckObject> {
    return this.#checks.values();
  }

  get(version: Version, namespace: string, name: string): CheckObject | null {
    return this.#checks.get(keyOf(version, namespace, name)) ?? null;
  }

  /** The check whose present run is called so. */
  byRun(version: Version, run: string): CheckObject | null {
    const key = this.#runs.get(`${version} ${run}`);
    return key === undefined ? null : (this.#checks.get(key) ?? null);
  }

  /** States whose check is gone: namespace and name. */
  *orphans(): Generator<{ readonly namespace: string; readonly name: string }> {
    for (const state of this.#stores.khstates.objects()) {
      const { namespace, name } = namesOf(state);
      const isJob = text(child(state, 'spec'), 'khWorkload') === 'KHJob';
      if (!isJob && this.#stores.khchecks.get(namespace, name) === null) yield { namespace, name };
    }
  }

  /**
   * How long ago the last run began, milliseconds; Infinity: there was none. By this process's own clock from when it saw the run begin:
   * a clock that is set, or another machine's that goes differently, ends no run.
   */
  sinceBegun(check: CheckObject): number {
    const sighting = this.#sightings.get(keyOf(check.version, check.namespace, check.name));
    return sighting === undefined ? Infinity : this.#parts.clock.now() - sighting.beganAt;
  }

  /** Takes in what the API server answered to a change, before the watch has it. */
  learn(resource: ResourceName, object: JsonObject): void {
    const { namespace, name } = namesOf(object);
    if (name === '') return;
    const changes: JsonChange[] = [];
    this.#stores[resource].put(namespace, name, [withoutManagedFields(object)], changes);
    this.#changed(resource, changes);
  }

  async #discover(): Promise<void> {
    const { clock, log } = this.#parts;
    const { signal } = this.#stopping;
    const failures = new FailureReport({
      clock,
      log,
      work: 'looking for the kinds of Kuberhealthy',
    });
    while (!signal.aborted) {
      let waitMs = LOOK_EVERY_MS;
      try {
        for (const version of [2, 3] as const)
          if (!this.#followed.has(version) && (await this.#isServed(version, signal)))
            this.#follow(version);
        if (!this.#looked && this.#followed.size === 0)
          log.warning(
            'the cluster has neither khchecks.comcast.github.io nor healthchecks.kuberhealthy.github.io: kubectl apply -f deploy/check/crds.yaml',
          );
        this.#looked = true;
        failures.over();
      } catch (error) {
        if (signal.aborted) return;
        waitMs = RETRY_MS;
        if (error instanceof ApiFailure) failures.failed(error, waitMs, 'no check runs meanwhile');
        else log.error(bugText(error));
      }
      if (this.#followed.size === 2) return;
      await sleep(clock, waitMs, signal);
    }
  }

  async #isServed(version: Version, signal: AbortSignal): Promise<boolean> {
    const [resource] = ofVersion[version];
    const { group, version: served } = RESOURCES[resource!];
    const path = `/apis/${group}/${served}`;
    try {
      await getJson(this.#parts.client, { path, task: `get ${group}`, waitMs: WAIT_MS, signal });
      return true;
    } catch (error) {
      if (error instanceof ApiFailure && error.kind === 'missing') return false;
      throw error;
    }
  }

  #follow(version: Version): void {
    this.#followed.add(version);
    for (const resource of ofVersion[version]) {
      const reflector = new Reflector<JsonObject, JsonChange>({
        ...this.#parts,
        resource: {
          labelSelector: '',
          fieldSelector: '',
          forms: [
            {
              name: `${resource}.${RESOURCES[resource].group}`,
              path: resourcePath(resource, this.#parts.namespace),
              transform: (raw) => [withoutManagedFields(raw)],
            },
          ],
        },
        store: this.#stores[resource],
        canStream: async () => false,
        changes: (batch) => this.#changed(resource, batch),
        listed: () => void this.#listed.add(resource),
        failed: () => undefined,
      });
      this.#reflectors.push(reflector);
      reflector.start();
    }
  }

  #changed(resource: ResourceName, changes: readonly JsonChange[]): void {
    const version = resource === 'healthchecks' ? 3 : 2;
    const isNew = !this.#listed.has(resource);
    for (const { before, now } of changes) {
      const { namespace, name } = namesOf((now ?? before)!);
      this.#reread(version, namespace, name, isNew);
    }
  }

  #reread(version: Version, namespace: string, name: string, isNew: boolean): void {
    const key = keyOf(version, namespace, name);
    const before = this.#checks.get(key);
    if (before !== undefined) this.#runs.delete(`${version} ${before.state.run}`);
    const { khchecks, khstates, healthchecks } = this.#stores;
    const object = (version === 2 ? khchecks : healthchecks).get(namespace, name);
    if (object === null) {
      this.#checks.delete(key);
      this.#sightings.delete(key);
      return;
    }
    const check =
      version === 2 ? readKhCheck(object, khstates.get(namespace, name)) : readHealthCheck(object);
    this.#checks.set(key, check);
    if (check.state.run !== '') this.#runs.set(`${version} ${check.state.run}`, key);
    this.#sight(key, check, isNew);
    if (before?.uid === check.uid && before.remarks.join() === check.remarks.join()) return;
    for (const remark of check.remarks) this.#parts.log.warning(`${fullName(check)}: ${remark}`);
  }

  /** @param isNew what is found at the start began when it says; what changes later, just now */
  #sight(key: string, { state: { begunAt } }: CheckObject, isNew: boolean): void {
    if (begunAt === null) return void this.#sightings.delete(key);
    const { clock } = this.#parts;
    const known = this.#sightings.get(key);
    if (known?.begunAt === begunAt) return;
    const agoMs = isNew ? Math.max(0, clock.wall() - begunAt) : 0;
    this.#sightings.set(key, { begunAt, beganAt: clock.now() - agoMs });
  }
}

/** When a run began: as its object says, and by this process's clock. */
interface Sighting {
  readonly begunAt: number;
  readonly beganAt: number;
}

function namesOf(object: JsonObject): { namespace: string; name: string } {
  const metadata = child(object, 'metadata');
  return { namespace: text(metadata, 'namespace'), name: text(metadata, 'name') };
}

function keyOf(version: Version, namespace: string, name: string): string {
  return `${version} ${namespace}/${name}`;
}
