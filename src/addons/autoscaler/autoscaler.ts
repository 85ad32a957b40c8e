/** Keeps the number of a workload's replicas in proportion to the cluster, like cluster-proportional-autoscaler. */
import { sleep, type Clock } from '../../server/base/clock.ts';
import { FailureReport } from '../../server/base/failure-report.ts';
import {
  child,
  children,
  isObject,
  text,
  textMap,
  type JsonObject,
} from '../../server/base/json-object.ts';
import type { Log } from '../../server/base/log.ts';
import { Problem } from '../../server/base/problem.ts';
import type { Random } from '../../server/base/random.ts';
import { apiClient, userAgent, type ApiClient } from '../../server/kube/api/client.ts';
import type { ApiConnection } from '../../server/kube/api/connection.ts';
import { ApiFailure } from '../../server/kube/api/failure.ts';
import {
  createObject,
  findObject,
  getObject,
  replaceObject,
  type ObjectRequest,
} from '../../server/kube/api/one-object.ts';
import { Reflector } from '../../server/kube/api/reflector.ts';
import type { WatchedResource } from '../../server/kube/api/resources.ts';
import {
  StringTable,
  type GoneRecord,
  type ObjectRecord,
} from '../../server/kube/store/object-record.ts';
import { ObjectStore } from '../../server/kube/store/object-store.ts';
import { readSizing, type ClusterSize, type SizedReplicas } from './proportional.ts';

/** A workload to scale: `deployment/coredns`. */
export interface ScaleTarget {
  readonly kind: TargetKind;
  readonly name: string;
}

/** Their API paths, by kind in lower case. */
const kinds = {
  deployment: '/apis/apps/v1/namespaces/NAMESPACE/deployments',
  replicaset: '/apis/apps/v1/namespaces/NAMESPACE/replicasets',
  statefulset: '/apis/apps/v1/namespaces/NAMESPACE/statefulsets',
  replicationcontroller: '/api/v1/namespaces/NAMESPACE/replicationcontrollers',
} as const;

/** The kinds that can be scaled. */
export type TargetKind = keyof typeof kinds;
const targetKinds = Object.keys(kinds) as readonly TargetKind[];

export interface AutoscalerParts {
  readonly connection: ApiConnection;
  readonly version: string;
  readonly namespace: string;
  /** Name of the ConfigMap with `linear` or `ladder`. */
  readonly configMap: string;
  /** Data used to create the ConfigMap if it does not exist. Null if it must exist. */
  readonly defaults: Readonly<Record<string, string>> | null;
  readonly targets: readonly ScaleTarget[];
  /** Selects the nodes that count; `''`: all. */
  readonly nodeLabels: string;
  readonly everyMs: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/** A node's capacity for pods, and whether new pods are scheduled on it. */
interface NodeSize extends ObjectRecord {
  /** CPUs available to pods, in thousandths. */
  readonly milliCores: number;
  /** 1 if it is ready and not cordoned, and else 0. */
  readonly schedulable: number;
}

/** Timeout for requests, in milliseconds. */
const WAIT_MS = 10_000;

/** Follows the nodes with a list and a watch, and reads the ConfigMap and the targets every `everyMs`. */
export class Autoscaler {
  readonly #parts: AutoscalerParts;
  readonly #client: ApiClient;
  readonly #nodes = new ObjectStore<NodeSize>(
    'Node',
    { milliCores: 'number', schedulable: 'number' },
    new StringTable(),
  );
  readonly #reflector: Reflector<NodeSize, NodeSize | GoneRecord>;
  readonly #failures: FailureReport;
  #listed = false;

  constructor(parts: AutoscalerParts) {
    this.#parts = parts;
    const { connection, clock, log, random } = parts;
    this.#client = apiClient({ connection, clock, userAgent: userAgent(parts.version) });
    this.#failures = new FailureReport({ log, clock, work: `scaling by ${this.#where}` });
    this.#reflector = new Reflector({
      client: this.#client,
      resource: nodeSizes(parts.nodeLabels),
      store: this.#nodes,
      clock,
      random,
      log,
      listed: () => {
        this.#listed = true;
      },
    });
  }

  /** Runs until the signal fires. Failures are reported and retried, and replicas stay unchanged in the meantime. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, everyMs } = this.#parts;
    this.#reflector.start();
    // An incomplete list must not decide anything.
    while (!this.#listed && !signal.aborted) await sleep(clock, 100, signal);
    while (!signal.aborted) {
      await this.#scaleOnce(signal);
      await sleep(clock, everyMs, signal);
    }
    await this.#reflector.stop();
    this.#client.close();
  }

  get #where(): string {
    return `ConfigMap ${this.#parts.namespace}/${this.#parts.configMap}`;
  }

  async #scaleOnce(signal: AbortSignal): Promise<void> {
    try {
      const data = await this.#readConfigMap(signal);
      const sized = readSizing(data, this.#where).replicas(this.#size());
      let failure: unknown = null;
      for (const target of this.#parts.targets) {
        try {
          await this.#scale(target, sized, signal);
        } catch (error) {
          // The other targets are still scaled.
          if (!(error instanceof ApiFailure) || signal.aborted) throw error;
          failure ??= error;
        }
      }
      if (failure !== null) throw failure;
      this.#failures.over();
    } catch (error) {
      if (signal.aborted) return;
      const failure = asFailure(error);
      if (failure === null) throw error;
      this.#failures.failed(failure, this.#parts.everyMs, 'replicas stay unchanged');
    }
  }

  #size(): ClusterSize {
    const size = { nodes: 0, cores: 0, schedulableNodes: 0, schedulableCores: 0 };
    for (const node of this.#nodes.objects()) {
      size.nodes++;
      size.cores += node.milliCores / 1000;
      if (node.schedulable === 0) continue;
      size.schedulableNodes++;
      size.schedulableCores += node.milliCores / 1000;
    }
    // The sum of all nodes' millicores is rounded up only once.
    return {
      ...size,
      cores: Math.ceil(size.cores),
      schedulableCores: Math.ceil(size.schedulableCores),
    };
  }

  async #readConfigMap(signal: AbortSignal): Promise<Readonly<Record<string, string>>> {
    const { namespace, configMap: name, defaults, log } = this.#parts;
    const directory = `/api/v1/namespaces/${namespace}/configmaps`;
    const request = asked(`${directory}/${name}`, `get configmaps ${name}`, signal);
    if (defaults === null) return textMap(await getObject(this.#client, request), 'data');
    const found = await findObject(this.#client, request);
    if (found !== null) return textMap(found, 'data');
    const made = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace },
      data: defaults,
    };
    await createObject(this.#client, asked(directory, `create configmaps ${name}`, signal), made);
    log.info(`${this.#where} did not exist and was created from --default-params`);
    return defaults;
  }

  async #scale(target: ScaleTarget, sized: SizedReplicas, signal: AbortSignal): Promise<void> {
    const { namespace, log } = this.#parts;
    const path = `${kinds[target.kind].replace('NAMESPACE', namespace)}/${target.name}/scale`;
    const scaleTask = `${target.kind}s/scale ${target.name}`;
    const scale = await getObject(this.#client, asked(path, `get ${scaleTask}`, signal));
    const spec = child(scale, 'spec');
    const before = Number(spec['replicas'] ?? 0);
    if (before === sized.replicas) return;
    const wanted = { ...scale, spec: { ...spec, replicas: sized.replicas } };
    await replaceObject(this.#client, asked(path, `update ${scaleTask}`, signal), wanted);
    const { schedulableNodes, schedulableCores } = this.#size();
    log.info(
      `${target.kind} ${namespace}/${target.name}: ${before} → ${sized.replicas} replicas (${sized.because}; ` +
        `${schedulableNodes} nodes, ${schedulableCores} processors)`,
    );
  }
}

/** Nodes with these labels; `''`: all. */
function nodeSizes(labelSelector: string): WatchedResource<NodeSize> {
  const form = {
    name: 'nodes',
    path: '/api/v1/nodes',
    transform: (raw: JsonObject) => [sizeOf(raw)],
  };
  return { labelSelector, forms: [form] };
}

function sizeOf(raw: JsonObject): NodeSize {
  const status = child(raw, 'status');
  const ready = children(status, 'conditions').some(
    (condition) => text(condition, 'type') === 'Ready' && text(condition, 'status') === 'True',
  );
  return {
    kind: 'Node',
    namespace: '',
    name: text(child(raw, 'metadata'), 'name'),
    milliCores: milliCores(text(child(status, 'allocatable'), 'cpu')),
    schedulable: ready && child(raw, 'spec')['unschedulable'] !== true ? 1 : 0,
  };
}

/**
 * Converts a quantity of CPUs to thousandths: `4`, `3920m`. Returns 0 if it is malformed. The API has more forms, but
 * kubelets write only these two.
 */
function milliCores(quantity: string): number {
  const [, digits = '0', milli] = /^(\d+(?:\.\d+)?)(m?)$/.exec(quantity) ?? [];
  return Math.ceil(Number(digits) * (milli === 'm' ? 1 : 1000));
}

function asked(path: string, task: string, signal: AbortSignal): ObjectRequest {
  return { path, task, waitMs: WAIT_MS, signal };
}

/** Returns the report as text, or null if the cause is a bug. */
function asFailure(error: unknown): { kind: string; message: string; advice: string } | null {
  if (error instanceof ApiFailure) return error;
  if (error instanceof Problem)
    return { kind: error.code, message: error.message, advice: error.remedy ?? '' };
  return null;
}

/**
 * Parses a comma-separated list of targets: `deployment/coredns`.
 * @throws the error returned by `wrong` if a word is malformed
 */
export function readTargets(given: string, wrong: (text: string) => Error): readonly ScaleTarget[] {
  return given.split(',').map((word) => {
    const [kind = '', name = '', ...more] = word.trim().split('/');
    const known = targetKinds.find((one) => one === kind.toLowerCase());
    if (known === undefined || name === '' || more.length > 0)
      throw wrong(
        `"${word.trim()}" is not a target: KIND/NAME, where KIND is one of ${targetKinds.join(', ')}`,
      );
    return { kind: known, name };
  });
}

/**
 * Converts `{"linear": {…}}` to the data for a ConfigMap.
 * @throws the error returned by `wrong` if the text is malformed
 */
export function readDefaults(
  given: string,
  wrong: (text: string) => Error,
): Record<string, string> {
  let read: unknown;
  try {
    read = JSON.parse(given);
  } catch (error) {
    throw wrong(`the default parameters are not JSON: ${(error as Error).message}`);
  }
  if (!isObject(read)) throw wrong('the default parameters are not a JSON object');
  return Object.fromEntries(
    Object.entries(read).map(([mode, params]) => [mode, JSON.stringify(params)]),
  );
}
