import { plainAddress } from '../../base/ip.ts';
import {
  asObject,
  child,
  children,
  text,
  textMap,
  texts,
  type JsonObject,
} from '../../base/json-object.ts';
import { hashOf, parseSpans, type AddressRange } from './address-range.ts';
import { podIpsAnnotation, readyAnnotation, type Manifest, type WorkloadKind } from './manifest.ts';

/** A pod implied by the directory, either given explicitly or created from its workload. */
export interface ImpliedPod {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly ips: readonly string[];
  readonly phase: string;
  readonly ready: boolean;
  readonly hostNetwork: boolean;
  readonly terminating: boolean;
  readonly hostname: string;
  readonly subdomain: string;
  readonly nodeName: string;
  readonly ports: readonly ContainerPort[];
  readonly annotations: Readonly<Record<string, string>>;
  /** `spec` of the pod, or of its template. */
  readonly spec: JsonObject;
}

export interface ContainerPort {
  readonly name: string;
  readonly port: number;
  readonly protocol: string;
}

export interface ImpliedNode {
  readonly name: string;
  readonly zone: string;
  readonly ips: readonly string[];
}

const workloadKinds: ReadonlySet<string> = new Set<WorkloadKind>([
  'Deployment',
  'StatefulSet',
  'DaemonSet',
  'ReplicaSet',
  'ReplicationController',
]);

export function impliedNodes(manifests: readonly Manifest[]): ImpliedNode[] {
  return manifests
    .filter((manifest) => manifest.kind === 'Node')
    .map(({ name, labels, raw }) => ({
      name,
      zone:
        labels['topology.kubernetes.io/zone'] ??
        labels['failure-domain.beta.kubernetes.io/zone'] ??
        '',
      ips: children(child(raw, 'status'), 'addresses')
        .filter((address) => text(address, 'type') === 'InternalIP')
        .map((address) => text(address, 'address')),
    }));
}

/** Returns the addresses that manifests specify, which no other pod may get. */
export function statedPodIps(manifests: readonly Manifest[]): string[] {
  const found: string[] = [];
  for (const manifest of manifests) {
    found.push(...(parseSpans(manifest.annotations[podIpsAnnotation] ?? '') ?? []));
    if (manifest.kind === 'Pod') found.push(...statusIps(manifest.raw));
    if (workloadKinds.has(manifest.kind)) {
      const template = child(child(manifest.raw, 'spec'), 'template');
      found.push(...(parseSpans(annotationsOf(template)[podIpsAnnotation] ?? '') ?? []));
    }
  }
  return found;
}

/** Returns every pod in the directory: the explicit ones, and those of workloads that have no explicit pods. */
export function impliedPods(
  manifests: readonly Manifest[],
  nodes: readonly ImpliedNode[],
  podIps: AddressRange,
  nodeIps: AddressRange,
): ImpliedPod[] {
  const maker = new PodMaker(nodes, podIps, nodeIps);
  const owners = ownersIn(manifests);
  const written = manifests.filter(({ kind }) => kind === 'Pod').map((pod) => maker.written(pod));
  const made = manifests
    .filter(({ kind }) => workloadKinds.has(kind))
    .filter((workload) => !owners.has(ownerKey(workload.namespace, workload)))
    .flatMap((workload) => maker.ofWorkload(workload));
  return [...written, ...made];
}

interface PodParts {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: JsonObject;
  /** The pod's manifest; `{}` if it has none. */
  readonly raw: JsonObject;
  /** Addresses from an annotation. */
  readonly stated: readonly string[];
}

/** Creates pods, assigning nodes and addresses where none are specified. */
class PodMaker {
  readonly #nodes: readonly ImpliedNode[];
  readonly #podIps: AddressRange;
  readonly #nodeIps: AddressRange;

  constructor(nodes: readonly ImpliedNode[], podIps: AddressRange, nodeIps: AddressRange) {
    this.#nodes = nodes;
    this.#podIps = podIps;
    this.#nodeIps = nodeIps;
  }

  written(manifest: Manifest): ImpliedPod {
    const { namespace, name, labels, annotations, raw } = manifest;
    const stated = parseSpans(annotations[podIpsAnnotation] ?? '') ?? [];
    return this.#make({
      namespace,
      name,
      labels,
      annotations,
      spec: child(raw, 'spec'),
      raw,
      stated,
    });
  }

  /** Returns the pods of a deployment or another workload, one per replica. */
  ofWorkload(workload: Manifest): ImpliedPod[] {
    const spec = child(workload.raw, 'spec');
    const template = child(spec, 'template');
    const podSpec = child(template, 'spec');
    const templateAnnotations = annotationsOf(template);
    const spans = workload.annotations[podIpsAnnotation] ?? templateAnnotations[podIpsAnnotation];
    const byFamily = families(parseSpans(spans ?? '') ?? []);
    const stateful = workload.kind === 'StatefulSet';
    return podNames(workload, spec).map((name, index) =>
      this.#make({
        namespace: workload.namespace,
        name,
        labels: textMap(child(template, 'metadata'), 'labels'),
        annotations: { ...templateAnnotations, ...workload.annotations },
        spec: stateful
          ? { ...podSpec, hostname: name, subdomain: text(spec, 'serviceName') }
          : podSpec,
        raw: {},
        stated: byFamily.map((family) => family[index]).filter((ip) => ip !== undefined),
      }),
    );
  }

  #make({ namespace, name, labels, annotations, spec, raw, stated }: PodParts): ImpliedPod {
    const status = child(raw, 'status');
    const phase = text(status, 'phase') || 'Running';
    const hostNetwork = spec['hostNetwork'] === true;
    const key = `${namespace}/${name}`;
    const nodes = this.#nodes;
    const nodeName =
      text(spec, 'nodeName') || (nodes[hashOf(key) % nodes.length]?.name ?? 'node-1');
    const known = stated.length > 0 ? stated : statusIps(raw);
    const own = (): readonly string[] =>
      hostNetwork
        ? this.#nodeAddresses(nodeName)
        : [this.#podIps.take(key)].filter((ip) => ip !== null);
    return {
      namespace,
      name,
      labels,
      // If a pod was pending when it was exported from a live cluster, it really has no address yet.
      ips: known.length > 0 ? known : phase === 'Running' ? own() : [],
      phase,
      ready: annotations[readyAnnotation] !== 'false' && isReady(status),
      hostNetwork,
      terminating: text(child(raw, 'metadata'), 'deletionTimestamp') !== '',
      hostname: text(spec, 'hostname'),
      subdomain: text(spec, 'subdomain'),
      nodeName,
      ports: containerPorts(spec),
      annotations,
      spec,
    };
  }

  /** Returns the node's specified addresses, or else one from the node range. */
  #nodeAddresses(nodeName: string): readonly string[] {
    const stated = this.#nodes.find((node) => node.name === nodeName)?.ips ?? [];
    return stated.length > 0 ? stated : [this.#nodeIps.take(nodeName)].filter((ip) => ip !== null);
  }
}

/** Returns pod names like those a controller generates, but the same in every run. */
function podNames(workload: Manifest, spec: JsonObject): string[] {
  const { kind, name, namespace } = workload;
  const stated = spec['replicas'];
  const count = kind === 'DaemonSet' ? 1 : typeof stated === 'number' ? stated : 1;
  const first = child(spec, 'ordinals')['start'];
  return Array.from({ length: count }, (_, index) => {
    if (kind === 'StatefulSet') return `${name}-${(typeof first === 'number' ? first : 0) + index}`;
    const own = suffix(`${namespace}/${name}/${index}`, 5);
    return kind === 'Deployment'
      ? `${name}-${suffix(`${namespace}/${name}`, 10)}-${own}`
      : `${name}-${own}`;
  });
}

/** The letters Kubernetes uses in generated suffixes. There are no vowels, so that they form no words. */
const suffixLetters = 'bcdfghjklmnpqrstvwxz2456789';

/** Returns `length` letters that depend only on `seed`. */
export function suffix(seed: string, length: number): string {
  let letters = '';
  for (let i = 0; i < length; i++) {
    letters += suffixLetters[hashOf(`${seed}#${i}`) % suffixLetters.length];
  }
  return letters;
}

/**
 * Returns those workloads, by `ownerKey`, whose pods or replica sets are themselves in the directory (e.g. in an export
 * from a live cluster).
 */
function ownersIn(manifests: readonly Manifest[]): ReadonlySet<string> {
  const owners = new Set<string>();
  for (const { kind, namespace, raw } of manifests) {
    if (kind !== 'Pod' && kind !== 'ReplicaSet') continue;
    for (const owner of children(child(raw, 'metadata'), 'ownerReferences')) {
      owners.add(ownerKey(namespace, { kind: text(owner, 'kind'), name: text(owner, 'name') }));
    }
  }
  return owners;
}

function ownerKey(
  namespace: string,
  { kind, name }: { readonly kind: string; readonly name: string },
): string {
  return `${kind}/${namespace}/${name}`;
}

function containerPorts(spec: JsonObject): ContainerPort[] {
  return [...children(spec, 'containers'), ...sidecars(spec)].flatMap((container) =>
    children(container, 'ports').map((port) => ({
      name: text(port, 'name'),
      port: Number(asObject(port)['containerPort']) || 0,
      protocol: text(port, 'protocol') || 'TCP',
    })),
  );
}

/** Returns the sidecars: init containers that keep running. */
function sidecars(spec: JsonObject): JsonObject[] {
  return children(spec, 'initContainers').filter(
    (container) => text(container, 'restartPolicy') === 'Always',
  );
}

function isReady(status: JsonObject): boolean {
  const condition = children(status, 'conditions').find((entry) => text(entry, 'type') === 'Ready');
  return condition === undefined || text(condition, 'status') === 'True';
}

function statusIps(raw: JsonObject): string[] {
  const status = child(raw, 'status');
  const many = children(status, 'podIPs').flatMap((entry) => texts({ ip: [entry['ip']] }, 'ip'));
  const one = text(status, 'podIP');
  return (many.length > 0 ? many : one === '' ? [] : [one]).map(plainAddress);
}

function annotationsOf(template: JsonObject): Record<string, string> {
  return textMap(child(template, 'metadata'), 'annotations');
}

/** Separates IPv4 from IPv6 addresses, because each pod gets one of each. */
function families(ips: readonly string[]): string[][] {
  return [ips.filter((ip) => !ip.includes(':')), ips.filter((ip) => ip.includes(':'))];
}
