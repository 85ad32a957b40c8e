/** Lists and watches the cluster's checks, which are KuberhealthyChecks with their states, and HealthChecks. */
import { sleep, type Clock } from '../../server/base/clock.ts';
import { FailureReport } from '../../server/base/failure-report.ts';
import { child, children, text, type JsonObject } from '../../server/base/json-object.ts';
import { bugText, type Log } from '../../server/base/log.ts';
import type { Random } from '../../server/base/random.ts';
import type { ApiClient } from '../../server/kube/api/client.ts';
import { ApiFailure } from '../../server/kube/api/failure.ts';
import { findObject } from '../../server/kube/api/one-object.ts';
import { Reflector } from '../../server/kube/api/reflector.ts';
import { JsonStore, type JsonChange, type OnLeftOut } from './json-store.ts';
import { ObjectRoom } from './object-room.ts';
import {
  fullName,
  keyOf,
  readHealthCheck,
  readKhCheck,
  readKhJob,
  type CheckResourceName,
  type CheckObject,
  type KuberhealthyVersion,
} from './check-object.ts';
import { CheckerPods } from './checker-pods.ts';
import { storedObject } from './stored-object.ts';

/** Each Kuberhealthy resource's API group and version, by plural name as in API paths. */
export const RESOURCES = {
  khchecks: { group: 'comcast.github.io', version: 'v1' },
  khjobs: { group: 'comcast.github.io', version: 'v1' },
  khstates: { group: 'comcast.github.io', version: 'v1' },
  healthchecks: { group: 'kuberhealthy.github.io', version: 'v2' },
} as const;

/** A Kuberhealthy resource's plural name as in API paths, including states. */
export type CheckResource = keyof typeof RESOURCES;

const ofVersion: Readonly<Record<KuberhealthyVersion, readonly CheckResource[]>> = {
  2: ['khchecks', 'khjobs', 'khstates'],
  3: ['healthchecks'],
};

export interface CheckWatchParts {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** The watched namespace, or `''` for all. */
  readonly namespace: string;
}

/** Interval for rediscovering missing resources. */
const LOOK_EVERY_MS = 60_000;
const RETRY_MS = 5000;
const WAIT_MS = 10_000;

/** Limits in bytes. Objects take a few kilobytes each; most of the container's 120 MiB is needed for the program. */
const ROOM = { object: 1024 * 1024, namespace: 8 * 1024 * 1024, all: 12 * 1024 * 1024 };
/** Minimum interval between warnings about objects beyond the limit, in milliseconds. */
const TELL_MS = 60_000;
const NO_ROOM: Readonly<Record<Parameters<OnLeftOut>[1], string>> = {
  object: 'it is too large',
  namespace: 'the objects in its namespace use all the memory that one namespace may use',
  all: 'all objects together are too large',
};

const KINDS_OF_2 = ['khcheck', 'khjob'] as const;
/** A state has the same name as its check or job. */
const BLOCKED =
  'a khcheck has the same name, and both would share one khstate; rename one of them to run the job';

/** A resource's API path in a namespace. An empty namespace means all of them. */
export function resourcePath(resource: CheckResource, namespace: string): string {
  const { group, version } = RESOURCES[resource];
  const within = namespace === '' ? '' : `/namespaces/${namespace}`;
  return `/apis/${group}/${version}${within}/${resource}`;
}

/** Follows all resources that the cluster serves. */
export class CheckWatch {
  readonly #parts: CheckWatchParts;
  readonly #room = new ObjectRoom(ROOM);
  readonly #stores: Readonly<Record<CheckResource, JsonStore>>;
  readonly #reflectors: Reflector<JsonObject, JsonChange>[] = [];
  readonly #followed = new Set<CheckResource>();
  readonly #listed = new Set<CheckResource>();
  readonly #checks = new Map<string, CheckObject>();
  readonly #runs = new Map<string, string>();
  readonly #sightings = new Map<string, RunSighting>();
  readonly #stopping = new AbortController();
  #looked = false;
  #toldAt = -Infinity;

  readonly pods: CheckerPods;

  constructor(parts: CheckWatchParts) {
    this.#parts = parts;
    const store = (resource: CheckResource): JsonStore =>
      new JsonStore(this.#room, (object, why) => this.#tellLeftOut(resource, object, why));
    this.#stores = {
      khchecks: store('khchecks'),
      khjobs: store('khjobs'),
      khstates: store('khstates'),
      healthchecks: store('healthchecks'),
    };
    this.pods = new CheckerPods(parts);
  }

  start(): void {
    void this.#discover();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([...this.#reflectors, this.pods].map((each) => each.stop()));
  }

  /** True once all objects are loaded. */
  get isSynced(): boolean {
    return this.#looked && [...this.#followed].every((resource) => this.#listed.has(resource));
  }

  /** The versions whose resources the cluster serves. */
  get versions(): readonly KuberhealthyVersion[] {
    return ([2, 3] as const).filter((version) =>
      ofVersion[version].some((resource) => this.#followed.has(resource)),
    );
  }

  checks(): Iterable<CheckObject> {
    return this.#checks.values();
  }

  get(kind: CheckResourceName, namespace: string, name: string): CheckObject | null {
    return this.#checks.get(keyOf({ kind, namespace, name })) ?? null;
  }

  /** Returns the check whose current run has this UUID. */
  byRun(version: KuberhealthyVersion, run: string): CheckObject | null {
    const key = this.#runs.get(`${version} ${run}`);
    return key === undefined ? null : (this.#checks.get(key) ?? null);
  }

  /** The number of objects beyond the limit, and the approximate size of the rest in bytes. */
  get numbers(): { readonly leftOut: number; readonly bytes: number } {
    let leftOut = 0;
    for (const store of Object.values(this.#stores)) leftOut += store.leftOut;
    return { leftOut, bytes: this.#room.taken };
  }

  /** Yields states that have no check. Yields nothing until all checks are known. */
  *orphans(): Generator<{ readonly namespace: string; readonly name: string }> {
    const { khchecks, khjobs } = this.#stores;
    if (khchecks.leftOut + khjobs.leftOut > 0) return;
    for (const state of this.#stores.khstates.objects()) {
      const { namespace, name } = namesOf(state);
      const has = (kind: CheckResourceName): boolean => this.get(kind, namespace, name) !== null;
      if (!has('khcheck') && !has('khjob')) yield { namespace, name };
    }
  }

  /**
   * Milliseconds since the last run started, or Infinity if the check has never run. Measured on this process's clock
   * from when it first saw the run, so that clock changes or differences cannot end it.
   */
  sinceBegun(check: CheckObject): number {
    const sighting = this.#sightings.get(keyOf(check));
    return sighting === undefined ? Infinity : this.#parts.clock.now() - sighting.beganAt;
  }

  /** Stores the API server's reply to a change without waiting for the watch to deliver it. */
  learn(resource: CheckResource, object: JsonObject): void {
    const { namespace, name } = namesOf(object);
    if (name === '') return;
    const changes: JsonChange[] = [];
    this.#stores[resource].put(namespace, name, [storedObject(object)], changes);
    this.#changed(resource, changes);
  }

  async #discover(): Promise<void> {
    const { clock, log } = this.#parts;
    const { signal } = this.#stopping;
    const failures = new FailureReport({
      clock,
      log,
      work: "looking for Kuberhealthy's resources",
    });
    while (!signal.aborted) {
      let waitMs = LOOK_EVERY_MS;
      try {
        for (const version of [2, 3] as const)
          for (const resource of await this.#served(version, signal)) this.#follow(resource);
        if (!this.#looked && this.#followed.size === 0)
          log.warning(
            'the cluster has neither khchecks.comcast.github.io nor healthchecks.kuberhealthy.github.io; to create them: kubectl apply -f deploy/check/crds.yaml',
          );
        this.#looked = true;
        failures.over();
      } catch (error) {
        if (signal.aborted) return;
        waitMs = RETRY_MS;
        if (error instanceof ApiFailure) failures.failed(error, waitMs, 'no check runs until then');
        else log.error(bugText(error));
      }
      if (this.#followed.size === Object.keys(RESOURCES).length) return;
      await sleep(clock, waitMs, signal);
    }
  }

  /** The resources of this version that the cluster serves. */
  async #served(
    version: KuberhealthyVersion,
    signal: AbortSignal,
  ): Promise<readonly CheckResource[]> {
    const wanted = ofVersion[version].filter((resource) => !this.#followed.has(resource));
    if (wanted.length === 0) return [];
    const { group, version: served } = RESOURCES[wanted[0]!];
    const path = `/apis/${group}/${served}`;
    const task = `get ${group}`;
    const found = await findObject(this.#parts.client, { path, task, waitMs: WAIT_MS, signal });
    if (found === null) return [];
    const names = new Set(children(found, 'resources').map((each) => text(each, 'name')));
    // Version 2 cannot work without its states, so log when they are missing.
    const has = (resource: string): boolean => names.has(resource);
    return wanted.filter((each) => has(each) || (each === 'khstates' && has('khchecks')));
  }

  #follow(resource: CheckResource): void {
    const version = resource === 'healthchecks' ? 3 : 2;
    if (!this.versions.includes(version)) this.pods.follow(version);
    this.#followed.add(resource);
    const reflector = new Reflector<JsonObject, JsonChange>({
      ...this.#parts,
      resource: {
        forms: [
          {
            name: `${resource}.${RESOURCES[resource].group}`,
            path: resourcePath(resource, this.#parts.namespace),
            transform: (raw) => [storedObject(raw)],
          },
        ],
      },
      store: this.#stores[resource],
      changes: (batch) => this.#changed(resource, batch),
      listed: () => void this.#listed.add(resource),
    });
    this.#reflectors.push(reflector);
    reflector.start();
  }

  #tellLeftOut(resource: CheckResource, ...[object, why]: Parameters<OnLeftOut>): void {
    const { clock, log } = this.#parts;
    if (clock.now() - this.#toldAt < TELL_MS) return;
    this.#toldAt = clock.now();
    const { leftOut } = this.numbers;
    log.warning(
      `${resource} ${fullName(object)} is skipped (${leftOut} objects in total): ${NO_ROOM[why]}`,
    );
  }

  #changed(resource: CheckResource, changes: readonly JsonChange[]): void {
    const kinds = resource === 'healthchecks' ? (['healthcheck'] as const) : KINDS_OF_2;
    const isNew = !this.#listed.has(resource);
    for (const { before, now } of changes) {
      const names = namesOf((now ?? before)!);
      for (const kind of kinds) this.#reread({ kind, ...names }, isNew);
    }
  }

  #reread(named: Pick<CheckObject, 'kind' | 'namespace' | 'name'>, isNew: boolean): void {
    const key = keyOf(named);
    const before = this.#checks.get(key);
    const ran = before === undefined ? '' : `${before.version} ${before.state.run}`;
    if (this.#runs.get(ran) === key) this.#runs.delete(ran);
    const check = this.#read(named);
    if (check === null) {
      this.#checks.delete(key);
      this.#sightings.delete(key);
      return;
    }
    this.#checks.set(key, check);
    if (check.state.run !== '') this.#runs.set(`${check.version} ${check.state.run}`, key);
    this.#sight(key, check, isNew);
    if (before?.uid === check.uid && before.remarks.join() === check.remarks.join()) return;
    for (const remark of check.remarks) this.#parts.log.warning(`${fullName(check)}: ${remark}`);
  }

  #read({
    kind,
    namespace,
    name,
  }: Pick<CheckObject, 'kind' | 'namespace' | 'name'>): CheckObject | null {
    const { khchecks, khjobs, khstates, healthchecks } = this.#stores;
    const stores = { khcheck: khchecks, khjob: khjobs, healthcheck: healthchecks };
    const object = stores[kind].get(namespace, name);
    if (object === null) return null;
    switch (kind) {
      case 'khcheck':
        return readKhCheck(object, khstates.get(namespace, name));
      case 'khjob': {
        if (khchecks.get(namespace, name) === null)
          return readKhJob(object, khstates.get(namespace, name));
        const job = readKhJob(object, null);
        return { ...job, isBlocked: true, remarks: [...job.remarks, BLOCKED] };
      }
      case 'healthcheck':
        return readHealthCheck(object);
    }
  }

  /** @param isNew true for objects in the first list, which started when they say; false for a run that starts now */
  #sight(key: string, { state: { begunAt } }: CheckObject, isNew: boolean): void {
    if (begunAt === null) return void this.#sightings.delete(key);
    const { clock } = this.#parts;
    const known = this.#sightings.get(key);
    if (known?.begunAt === begunAt) return;
    const agoMs = isNew ? Math.max(0, clock.wall() - begunAt) : 0;
    this.#sightings.set(key, { begunAt, beganAt: clock.now() - agoMs });
  }
}

/** The start time of a run, according to its object and to this process's clock. */
interface RunSighting {
  readonly begunAt: number;
  readonly beganAt: number;
}

function namesOf(object: JsonObject): { namespace: string; name: string } {
  const metadata = child(object, 'metadata');
  return { namespace: text(metadata, 'namespace'), name: text(metadata, 'name') };
}
