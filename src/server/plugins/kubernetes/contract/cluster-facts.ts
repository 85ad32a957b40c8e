import type { GoneRecord, ObjectRecord } from '../../../kube/store/object-record.ts';

/**
 * Messages about the cluster from the control part to the workers. Each object that is added, changed or removed is one
 * fact, with only the fields that DNS needs. The control part stores the same facts. The addresses, host names and
 * zones of endpoints are encoded as byte strings (endpoint-encoding.ts), which a structured clone copies at once. A
 * worker can therefore apply thousands of endpoints in the time that one query takes.
 */
export type ClusterFact =
  | NamespaceFact
  | ServiceFact
  | SliceFact
  | ImportFact
  | NodeFact
  | GoneRecord
  | AddressFact
  | TimeFact
  | SerialsFact
  | ListedFact;

export interface NamespaceFact extends ObjectRecord {
  readonly kind: 'Namespace';
}

export type ServiceForm = 'cluster' | 'headless' | 'external';

export interface ServiceFact extends ObjectRecord {
  readonly kind: 'Service';
  readonly form: ServiceForm;
  /** Encoded addresses (`encodeAddresses`). */
  readonly addresses: string;
  /** `NAME/PROTOCOL/PORT`, separated by commas (`printPorts`). */
  readonly ports: string;
  readonly external: string;
  /** External addresses and host names, separated by spaces. Empty unless a plugin needs them. */
  readonly outside: string;
}

export interface SliceFact extends ObjectRecord {
  readonly kind: 'EndpointSlice';
  /** The service that the slice belongs to, or empty. */
  readonly service: string;
  readonly imported: string;
  readonly cluster: string;
  readonly ports: string;
  /** The ready endpoints in encoded form (`encodeEndpoints`). */
  readonly endpoints: string;
}

export interface ImportFact extends ObjectRecord {
  readonly kind: 'ServiceImport';
  readonly form: 'cluster' | 'headless';
  readonly addresses: string;
  readonly ports: string;
}

/** A node's zone, and the addresses that the node and its pods send from. */
export interface NodeFact extends ObjectRecord {
  readonly kind: 'Node';
  /** `placeHash` of the node's zone, or empty if it has none. */
  readonly zone: string;
  /** The prefixes in encoded form (`encodePrefixes`). */
  readonly prefixes: string;
}

/** All information about the pods at an address. The pods themselves stay on the main thread (control/pod-table.ts). */
export interface AddressFact {
  readonly kind: 'Address';
  /** 4 or 16 bytes. */
  readonly address: string;
  /** The namespaces of all live pods that have this as their first address. */
  readonly namespaces: readonly string[];
  /** The namespace of the pod that sends from this address, or empty if it is ambiguous. */
  readonly client: string;
  /** True if this is a node's address, which the node's own programs and pods on the host network use. */
  readonly host?: true;
  /** Name and labels of the only pod that sends from this address, if metadata or top needs them. */
  readonly pod?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** The node where the pods that send from this address run (`placeHash`). Absent if unknown or not needed. */
  readonly node?: string;
}

/**
 * Time of the facts that follow, in Unix seconds. It becomes the zone's serial as soon as one of them changes anything.
 */
export interface TimeFact {
  readonly kind: 'Time';
  readonly at: number;
}

export interface SerialsFact {
  readonly kind: 'Serials';
  readonly own: number;
  readonly imported: number;
}

export interface ListedFact {
  readonly kind: 'Listed';
}

/**
 * A worker's acknowledgement of a batch. For the programming latency, it contains the times of the changes by kind of
 * service, in milliseconds since 1970. They are undefined if they were not measured.
 */
export type TriggerTimes =
  | { readonly cluster: readonly number[]; readonly headless: readonly number[] }
  | undefined;
