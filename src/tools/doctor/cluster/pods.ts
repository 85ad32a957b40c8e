/** A cluster's DNS pods, and the DNS settings of all other pods. */
import {
  isObject,
  child,
  children,
  text,
  texts,
  textMap,
  type JsonObject,
} from '../../../server/base/json-object.ts';
import { workloadOf } from '../../pods/workload-name.ts';
import type { LintObject } from '../../lint/subject.ts';
import { dnsServerIn } from '../../lint/workload.ts';

/** A pod that serves DNS. */
export interface DnsPod {
  readonly name: string;
  readonly namespace: string;
  readonly node: string;
  /** Empty while it has none. */
  readonly addresses: readonly string[];
  readonly role: 'server' | 'node-cache';
  readonly image: string;
  /** The pod’s service account. */
  readonly account: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly ready: boolean;
  /** True while the pod is terminating. */
  readonly leaving: boolean;
  /** The reason that its container waits: `CrashLoopBackOff`; empty if it does not. */
  readonly waiting: string;
  readonly restarts: number;
  /** The reason of its container's last termination: `OOMKilled`; empty if there was none. */
  readonly ended: string;
  readonly endedAt: string;
  /** Bytes; null if none is set. */
  readonly memoryLimit: number | null;
  /** The metrics port that its container declares; null if there is none. */
  readonly metricsPort: number | null;
}

/** Pods from one workload with the same DNS settings. */
export interface ClientGroup {
  readonly namespace: string;
  /** `deploy/cart`, or the pod’s own name if it has no workload. */
  readonly workload: string;
  readonly policy: string;
  readonly hostNetwork: boolean;
  /** `dnsConfig.nameservers`. */
  readonly nameservers: readonly string[];
  readonly searches: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  /** The number of such pods. */
  pods: number;
  /** One of them for the linter, with only the DNS parts of its spec. */
  readonly sample: JsonObject;
}

/** Pods in further groups are counted but not examined. */
const GROUPS_MAX = 5000;

/**
 * Reads all pods in a cluster one after the other. Memory grows only with the number of DNS pods
 * and kinds of clients.
 */
export class Pods {
  readonly servers: DnsPod[] = [];
  readonly #groups = new Map<string, ClientGroup>();
  readonly #namespace: string;
  total: number = 0;
  /** Pods of kinds beyond the limit. */
  leftOut: number = 0;

  /** @param namespace where the DNS pods are */
  constructor(namespace: string) {
    this.#namespace = namespace;
  }

  get clients(): readonly ClientGroup[] {
    return [...this.#groups.values()];
  }

  /** @returns the stored size, as JSON */
  take(pod: JsonObject): number {
    const metadata = child(pod, 'metadata');
    const phase = text(child(pod, 'status'), 'phase');
    if (phase === 'Succeeded' || phase === 'Failed') return 0;
    this.total++;
    if (text(metadata, 'namespace') === this.#namespace) {
      const served = dnsServerIn(asKube(pod));
      if (served !== null) {
        const server = dnsPod(pod, served.role, served.container.name);
        this.servers.push(server);
        return JSON.stringify(server).length;
      }
    }
    return this.#client(pod);
  }

  #client(pod: JsonObject): number {
    const metadata = child(pod, 'metadata');
    const spec = child(pod, 'spec');
    const config = child(spec, 'dnsConfig');
    const workload = workloadOf(metadata) || text(metadata, 'name');
    const settings = {
      dnsPolicy: text(spec, 'dnsPolicy') || 'ClusterFirst',
      dnsConfig: spec['dnsConfig'],
      hostNetwork: spec['hostNetwork'] === true,
    };
    const key = `${text(metadata, 'namespace')} ${workload} ${JSON.stringify(settings)}`;
    const known = this.#groups.get(key);
    if (known !== undefined) {
      known.pods++;
      return 0;
    }
    if (this.#groups.size >= GROUPS_MAX) {
      this.leftOut++;
      return 0;
    }
    const containers = children(spec, 'containers').map((each) => ({
      name: text(each, 'name'),
      image: text(each, 'image'),
    }));
    const group: ClientGroup = {
      namespace: text(metadata, 'namespace'),
      workload,
      policy: settings.dnsPolicy,
      hostNetwork: settings.hostNetwork,
      nameservers: texts(config, 'nameservers'),
      searches: texts(config, 'searches'),
      labels: textMap(metadata, 'labels'),
      pods: 1,
      sample: {
        metadata: { name: workload, namespace: text(metadata, 'namespace') },
        spec: { ...settings, containers },
      },
    };
    this.#groups.set(key, group);
    return key.length + JSON.stringify(group).length;
  }
}

/** True if a pod or node has the Ready condition. */
export function isReady(object: JsonObject): boolean {
  return children(child(object, 'status'), 'conditions').some(
    (each) => text(each, 'type') === 'Ready' && text(each, 'status') === 'True',
  );
}

/** True if the linter may report a group: its settings are not the defaults. */
export function isUnusual({ policy, hostNetwork, sample }: ClientGroup): boolean {
  return hostNetwork || policy !== 'ClusterFirst' || isObject(child(sample, 'spec')['dnsConfig']);
}

function asKube(value: JsonObject): LintObject {
  const { name, namespace } = { name: '', namespace: '', ...child(value, 'metadata') };
  const place = { file: '', line: 1, column: 1 };
  return { file: '', kind: 'Pod', name, namespace, value, place: () => place };
}

function dnsPod(pod: JsonObject, role: DnsPod['role'], container: string): DnsPod {
  const metadata = child(pod, 'metadata');
  const spec = child(pod, 'spec');
  const status = child(pod, 'status');
  const addresses = children(status, 'podIPs').map((each) => text(each, 'ip'));
  const named = (of: JsonObject, key: string, name: string): JsonObject =>
    children(of, key).find((each) => text(each, 'name') === name) ?? {};
  const own = named(spec, 'containers', container);
  const state = named(status, 'containerStatuses', container);
  const restarts = state['restartCount'];
  const ended = child(child(state, 'lastState'), 'terminated');
  const port = named(own, 'ports', 'metrics')['containerPort'];
  return {
    name: text(metadata, 'name'),
    namespace: text(metadata, 'namespace'),
    node: text(spec, 'nodeName'),
    addresses: (addresses.length > 0 ? addresses : [text(status, 'podIP')]).filter(
      (address) => address !== '',
    ),
    role,
    image: text(own, 'image'),
    account: text(spec, 'serviceAccountName') || 'default',
    labels: textMap(metadata, 'labels'),
    ready: isReady(pod),
    leaving: text(metadata, 'deletionTimestamp') !== '',
    waiting: text(child(child(state, 'state'), 'waiting'), 'reason'),
    restarts: typeof restarts === 'number' ? restarts : 0,
    ended: text(ended, 'reason'),
    endedAt: text(ended, 'finishedAt'),
    memoryLimit: bytesOf(child(child(own, 'resources'), 'limits')['memory']),
    metricsPort: typeof port === 'number' ? port : null,
  };
}

const units: Readonly<Record<string, number>> = {
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  Ki: 1024,
  Mi: 1024 ** 2,
  Gi: 1024 ** 3,
};

/** `170Mi` in bytes; null if it is not a memory quantity. */
function bytesOf(quantity: unknown): number | null {
  if (typeof quantity === 'number') return quantity;
  const [, number, unit = ''] = /^(\d+(?:\.\d+)?)(k|M|G|Ki|Mi|Gi)?$/.exec(String(quantity)) ?? [];
  return number === undefined ? null : Number(number) * units[unit]!;
}

/** `shop/deploy/cart`. */
export function labelOf({ namespace, workload }: ClientGroup): string {
  return `${namespace}/${workload}`;
}

/** `coredns-abc on node-1 (CrashLoopBackOff, 3 restarts)`. */
export function stateOf({ name, node, waiting, restarts }: DnsPod): string {
  const why = [waiting, restarts > 0 ? `${restarts} restarts` : ''].filter((word) => word !== '');
  return `${name}${node === '' ? '' : ` on ${node}`}${why.length > 0 ? ` (${why.join(', ')})` : ''}`;
}
