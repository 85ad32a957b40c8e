/**
 * Updates check states and their pods in the cluster. Each request needs one of the rights in `deploy/check/rbac.yaml`.
 */
import { sleep, type Clock } from '../../server/base/clock.ts';
import type { JsonObject } from '../../server/base/json-object.ts';
import type { ApiClient } from '../../server/kube/api/client.ts';
import { ApiFailure } from '../../server/kube/api/failure.ts';
import {
  createObject,
  deleteObject,
  patchObject,
  unlessMissing,
  type ObjectRequest,
} from '../../server/kube/api/one-object.ts';
import { KINDS, type CheckObject, type CheckCondition } from './check-object.ts';
import { ended, khStateOf, statusOf, type RunResult } from './check-state.ts';
import type { CheckerPod } from './check-pod.ts';
import { resourcePath, type CheckWatch } from './check-watch.ts';

export interface CheckClusterParts {
  readonly client: ApiClient;
  readonly watch: CheckWatch;
  readonly clock: Clock;
  /** Name of this replica, which states contain. */
  readonly authoritativePod: string;
}

const WAIT_MS = 10_000;
/** The number of attempts to update an object that other processes may be changing at the same time. */
const TRIES_MAX = 10;
const AGAIN_MS = 100;

/** The finalizer that Kuberhealthy 3 puts on HealthChecks. */
const FINALIZER = 'kuberhealthy.io/healthcheck';

/**
 * Updates objects at the API server and stores each reply immediately. All methods reject with an `ApiFailure`, or when
 * aborted.
 */
export class CheckCluster {
  readonly #parts: CheckClusterParts;

  constructor(parts: CheckClusterParts) {
    this.#parts = parts;
  }

  /**
   * Updates the current state of a check, even if other processes change it at the same time.
   * @param step returns the next state, or null if no change is needed
   * @returns the check with its new state, or null if nothing changed, or the check was deleted
   */
  async changeState(
    { kind, namespace, name }: Pick<CheckObject, 'kind' | 'namespace' | 'name'>,
    step: (check: CheckObject) => CheckCondition | null,
    signal: AbortSignal,
  ): Promise<CheckObject | null> {
    return this.#change({ kind, namespace, name }, signal, (check) => {
      const next = step(check);
      return next === null ? null : () => this.#write(check, next, signal);
    });
  }

  /**
   * Stores the result of a run.
   * @param isAgain true to replace an earlier result of the same run
   * @returns null if another result was stored first, or the run is no longer the current one
   */
  async endRun(
    check: CheckObject,
    run: string,
    { ok, errors }: RunResult,
    signal: AbortSignal,
    isAgain = false,
  ): Promise<CheckObject | null> {
    const { watch, clock, authoritativePod } = this.#parts;
    const node = watch.pods.ofRun(check.version, run)?.node ?? '';
    return this.changeState(
      check,
      (now) =>
        now.state.run === run && (now.state.isRunning || isAgain)
          ? ended(now, { ok, errors, node, authoritativePod }, clock.wall())
          : null,
      signal,
    );
  }

  /**
   * Writes a job's phase.
   * @returns the job, or null if it was changed or deleted in the meantime
   */
  async changePhase(
    job: Pick<CheckObject, 'kind' | 'namespace' | 'name'>,
    from: CheckObject['phase'],
    to: CheckObject['phase'],
    signal: AbortSignal,
  ): Promise<CheckObject | null> {
    const { client, watch } = this.#parts;
    return this.#change(job, signal, ({ namespace, name, phase, objectVersion }) => {
      if (phase !== from) return null;
      const path = `${resourcePath('khjobs', namespace)}/${name}`;
      const request = asked(path, `patch khjobs ${name}`, signal);
      const patch = { metadata: { resourceVersion: objectVersion }, spec: { phase: to } };
      return async () => watch.learn('khjobs', await patchObject(client, request, patch));
    });
  }

  /** @param write returns the changed check, or null if no change is needed */
  async #change(
    { kind, namespace, name }: Pick<CheckObject, 'kind' | 'namespace' | 'name'>,
    signal: AbortSignal,
    write: (check: CheckObject) => (() => Promise<void>) | null,
  ): Promise<CheckObject | null> {
    const { watch, clock } = this.#parts;
    for (let tries = 1; ; tries++) {
      const check = watch.get(kind, namespace, name);
      const change = check === null ? null : write(check);
      if (change === null) return null;
      try {
        await change();
        return watch.get(kind, namespace, name);
      } catch (error) {
        if (!(error instanceof ApiFailure)) throw error;
        if (error.kind === 'missing') return null;
        if (error.status !== 409 || tries === TRIES_MAX) throw error;
      }
      // By then the watch has delivered the current state.
      await sleep(clock, AGAIN_MS * tries, signal);
      signal.throwIfAborted();
    }
  }

  async #write(check: CheckObject, next: CheckCondition, signal: AbortSignal): Promise<void> {
    const { namespace, name, version, stateVersion, uid } = check;
    const { client, watch } = this.#parts;
    // Sends the version we read, so that the API server rejects decisions based on an older state.
    const metadata = { resourceVersion: stateVersion };
    if (version === 3) {
      const path = `${resourcePath('healthchecks', namespace)}/${name}/status`;
      const patch = { metadata, status: statusOf(check, next) };
      const request = asked(path, `patch healthchecks/status ${name}`, signal);
      watch.learn('healthchecks', await patchObject(client, request, patch));
      return;
    }
    const directory = resourcePath('khstates', namespace);
    const { annotations, spec } = khStateOf(check, next);
    const owner = { ...KINDS[check.kind], name, uid };
    if (stateVersion !== '') {
      // An existing state may belong to another job, so make this job its owner.
      const owned = check.kind === 'khjob' && { ownerReferences: [owner] };
      const patch = { metadata: { ...metadata, annotations, ...owned }, spec };
      const request = asked(`${directory}/${name}`, `patch khstates ${name}`, signal);
      watch.learn('khstates', await patchObject(client, request, patch));
      return;
    }
    const state = {
      apiVersion: 'comcast.github.io/v1',
      kind: 'KuberhealthyState',
      metadata: { name, namespace, annotations, ownerReferences: [owner] },
      spec,
    };
    const request = asked(directory, `create khstates ${name}`, signal);
    watch.learn('khstates', await createObject(client, request, state));
  }

  async createPod(pod: JsonObject, namespace: string, signal: AbortSignal): Promise<void> {
    const path = `/api/v1/namespaces/${namespace}/pods`;
    await createObject(this.#parts.client, asked(path, 'create pods', signal), pod);
  }

  /** Deletes a checker pod. A missing pod counts as deleted. */
  async deletePod({ namespace, name }: CheckerPod, signal: AbortSignal): Promise<void> {
    const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
    await deleteObject(this.#parts.client, asked(path, 'delete pods', signal));
  }

  /** Deletes a KuberhealthyState, or a KuberhealthyJob. */
  async deleteObject(
    resource: 'khstates' | 'khjobs',
    { namespace, name }: { readonly namespace: string; readonly name: string },
    signal: AbortSignal,
  ): Promise<void> {
    const path = `${resourcePath(resource, namespace)}/${name}`;
    await deleteObject(this.#parts.client, asked(path, `delete ${resource} ${name}`, signal));
  }

  /**
   * Removes Kuberhealthy's finalizer from checks that are being deleted, because Kuberhealthy itself no longer runs.
   */
  async removeFinalizer(check: CheckObject, signal: AbortSignal): Promise<void> {
    const { version, namespace, name, finalizers, stateVersion } = check;
    if (version !== 3 || !finalizers.includes(FINALIZER)) return;
    const path = `${resourcePath('healthchecks', namespace)}/${name}`;
    const patch = {
      metadata: {
        resourceVersion: stateVersion,
        finalizers: finalizers.filter((each) => each !== FINALIZER),
      },
    };
    const request = asked(path, `patch healthchecks ${name}`, signal);
    await unlessMissing(() => patchObject(this.#parts.client, request, patch));
  }
}

function asked(path: string, task: string, signal: AbortSignal): ObjectRequest {
  return { path, task, waitMs: WAIT_MS, signal };
}
