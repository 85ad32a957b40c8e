/**
 * Kubernetes objects reduced to what DNS needs of them (transform.ts). All are plain data that
 * survive a structured clone, so that a source on the main thread can send them to workers.
 */
export interface Service {
  readonly kind: 'Service';
  readonly namespace: string;
  readonly name: string;
  readonly type: ServiceType;
  /**
   * Every address of `spec.clusterIPs` (or the one of `spec.clusterIP`); `['None']` if headless;
   * `[]` if it has none.
   */
  readonly clusterIPs: readonly string[];
  /** Target of an ExternalName service without a trailing dot; `''` otherwise. */
  readonly externalName: string;
  readonly externalIPs: readonly string[];
  /** Addresses or host names of `status.loadBalancer.ingress`. */
  readonly loadBalancer: readonly string[];
  readonly ports: readonly ServicePort[];
}

/** `spec.type`. */
export type ServiceType = 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName';

/** One port of a service or an endpoint slice. */
export interface ServicePort {
  /** `''` if unnamed. */
  readonly name: string;
  /** `TCP`, `UDP` or `SCTP`, as the API spells it. */
  readonly protocol: string;
  /** -1 where an endpoint slice leaves the port open. */
  readonly port: number;
}

/** One endpoint slice; of a core Endpoints object, one subset. */
export interface EndpointSlice {
  readonly kind: 'EndpointSlice';
  readonly namespace: string;
  readonly name: string;
  /**
   * The service it belongs to (label `kubernetes.io/service-name`); `''` if it only belongs to an
   * import.
   */
  readonly service: string;
  readonly ports: readonly ServicePort[];
  readonly endpoints: readonly Endpoint[];
  /**
   * The time of the change that led here, milliseconds since 1970 (annotation
   * `endpoints.kubernetes.io/last-change-trigger-time`). 0 if unknown, and always 0 in a source's
   * `snapshot()`.
   */
  readonly triggeredAt: number;
  /**
   * The imported service it belongs to (label `multicluster.kubernetes.io/service-name`); absent
   * for most.
   */
  readonly importedService?: string;
  /**
   * The cluster it was exported from (label `multicluster.kubernetes.io/source-cluster`); absent
   * for most.
   */
  readonly cluster?: string;
}

export interface Endpoint {
  /** IP addresses; in a slice of the address type FQDN, domain names. */
  readonly addresses: readonly string[];
  /** Condition `ready`; true where the API leaves it out. */
  readonly ready: boolean;
  /** `''` if it has none. */
  readonly hostname: string;
  readonly nodeName: string;
  /** Name of its target: usually a pod, with KubeVirt a virtual machine; `''` if it has none. */
  readonly pod: string;
  /** Topology zone; `''` unless zones are wanted. */
  readonly zone: string;
  /** Names of zones in `hints.forZones`; absent: none, or hints are not wanted. */
  readonly forZones?: readonly string[];
  /** Names of nodes in `hints.forNodes`; absent: none, or hints are not wanted. */
  readonly forNodes?: readonly string[];
}

/** A pod, reduced to what its addresses need. */
export interface Pod {
  readonly kind: 'Pod';
  readonly namespace: string;
  readonly name: string;
  /** `status.podIPs`; the first is `status.podIP`. */
  readonly ips: readonly string[];
  /** `Pending`, `Running`, … or `''`. */
  readonly phase: string;
  readonly hostNetwork: boolean;
  /** True if it has a deletion timestamp. */
  readonly terminating: boolean;
  /** Only with `WantedObjects.podLabels`. */
  readonly labels?: Readonly<Record<string, string>>;
  /** `spec.nodeName`; only if `WantedObjects.topology` asks for it. */
  readonly nodeName?: string;
}

export interface Namespace {
  readonly kind: 'Namespace';
  readonly name: string;
}

/** A service of the cluster set (multicluster.x-k8s.io). */
export interface ServiceImport {
  readonly kind: 'ServiceImport';
  readonly namespace: string;
  readonly name: string;
  readonly type: 'ClusterSetIP' | 'Headless';
  readonly ips: readonly string[];
  readonly ports: readonly ServicePort[];
}

/** A node, reduced to its size, or to its place. */
export interface Node {
  readonly kind: 'Node';
  readonly name: string;
  /** The CPUs available to pods, in thousandths. */
  readonly milliCores: number;
  /** True if it is ready and not cordoned. */
  readonly schedulable: boolean;
  readonly place?: NodePlace;
}

/** The zone of a node, and the addresses from which it and its pods send. */
export interface NodePlace {
  /** Label `topology.kubernetes.io/zone`; `''` if it has none. */
  readonly zone: string;
  /** Its internal addresses, and `spec.podCIDRs`. */
  readonly prefixes: readonly string[];
}

/** All kinds of objects that a source brings in. */
export type KubeObject = Service | EndpointSlice | Pod | Namespace | ServiceImport | Node;
/** The kind of an object, as the API names it. */
export type ObjectKind = KubeObject['kind'];

/**
 * One step from one state of the cluster to the next. The namespace of a Namespace or a Node is
 * `''`.
 */
export type ObjectChange =
  | { readonly verb: 'put'; readonly object: KubeObject }
  | {
      readonly verb: 'delete';
      readonly kind: ObjectKind;
      readonly namespace: string;
      readonly name: string;
    };

/** The namespace of an object; `''` for one without namespace. */
export function namespaceOf(object: KubeObject): string {
  return object.kind === 'Namespace' || object.kind === 'Node' ? '' : object.namespace;
}
