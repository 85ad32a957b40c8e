/** Kubernetes objects reduced to what DNS may need (transform.ts). */
export interface Service {
  readonly kind: 'Service';
  readonly namespace: string;
  readonly name: string;
  readonly type: ServiceType;
  /**
   * Every address in `spec.clusterIPs` (or the one in `spec.clusterIP`), `['None']` if the service is headless, or `[]`
   * if there is none.
   */
  readonly clusterIPs: readonly string[];
  /** An ExternalName service's target without a trailing dot, or `''` for other services. */
  readonly externalName: string;
  readonly externalIPs: readonly string[];
  /** Addresses or host names in `status.loadBalancer.ingress`. */
  readonly loadBalancer: readonly string[];
  readonly ports: readonly ServicePort[];
}

/** `spec.type`. */
export type ServiceType = 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName';

/** One port of a service or an endpoint slice. */
export interface ServicePort {
  /** `''` if unnamed. */
  readonly name: string;
  /** `TCP`, `UDP` or `SCTP`, spelled as in the API. */
  readonly protocol: string;
  /** -1 if an endpoint slice leaves the port open. */
  readonly port: number;
}

/** One endpoint slice, or one subset of a core Endpoints object. */
export interface EndpointSlice {
  readonly kind: 'EndpointSlice';
  readonly namespace: string;
  readonly name: string;
  /** The service to which it belongs (label `kubernetes.io/service-name`), or `''` if it belongs only to an import. */
  readonly service: string;
  readonly ports: readonly ServicePort[];
  readonly endpoints: readonly Endpoint[];
  /**
   * Time of the change that led to this state, in milliseconds since 1970 (annotation
   * `endpoints.kubernetes.io/last-change-trigger-time`). 0 if unknown.
   */
  readonly triggeredAt: number;
  /** The imported service to which it belongs (label `multicluster.kubernetes.io/service-name`). Usually absent. */
  readonly importedService?: string;
  /** The cluster from which it was exported (label `multicluster.kubernetes.io/source-cluster`). Usually absent. */
  readonly cluster?: string;
}

export interface Endpoint {
  /** IP addresses, or domain names in a slice with address type FQDN. */
  readonly addresses: readonly string[];
  /** Condition `ready`; true if the API omits it. */
  readonly ready: boolean;
  /** `''` if it has none. */
  readonly hostname: string;
  readonly nodeName: string;
  /** Name of its target, which is usually a pod, or a virtual machine with KubeVirt. `''` if it has none. */
  readonly pod: string;
  /** Topology zone; `''` unless zones are wanted. */
  readonly zone: string;
  /** Names of zones in `hints.forZones`. Absent if there are none, or if hints are not wanted. */
  readonly forZones?: readonly string[];
  /** Names of nodes in `hints.forNodes`. Absent if there are none, or if hints are not wanted. */
  readonly forNodes?: readonly string[];
}

/** A pod, reduced to the data that determines its addresses. */
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
  /** `spec.nodeName`; only if `WantedObjects.topology` requests it. */
  readonly nodeName?: string;
}

export interface Namespace {
  readonly kind: 'Namespace';
  readonly name: string;
}

/** A service in the cluster set (multicluster.x-k8s.io). */
export interface ServiceImport {
  readonly kind: 'ServiceImport';
  readonly namespace: string;
  readonly name: string;
  readonly type: 'ClusterSetIP' | 'Headless';
  readonly ips: readonly string[];
  readonly ports: readonly ServicePort[];
}

/** A node, reduced to its zone and the addresses from which it and its pods send. */
export interface Node {
  readonly kind: 'Node';
  readonly name: string;
  /** Label `topology.kubernetes.io/zone`, or `''` if it has none. */
  readonly zone: string;
  /** Its internal addresses and `spec.podCIDRs`. */
  readonly prefixes: readonly string[];
}

export type KubeObject = Service | EndpointSlice | Pod | Namespace | ServiceImport | Node;
export type ObjectKind = KubeObject['kind'];
