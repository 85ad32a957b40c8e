/**
 * Messages about the cluster from the control part to the workers. Each object that is added, changed or removed is one
 * fact, with only the fields that DNS needs. The addresses, host names and zones of endpoints are encoded as byte
 * strings (endpoint-encoding.ts), which a structured clone copies at once. A worker can therefore apply thousands of
 * endpoints in the time that one query takes.
 */
export type ClusterFact =
  | NamespaceFact
  | ServiceFact
  | SliceFact
  | ImportFact
  | AddressFact
  | NodeFact
  | TimeFact
  | SerialsFact
  | ListedFact;

export interface NamespaceFact {
  readonly about: 'namespace';
  readonly name: string;
  readonly there: boolean;
}

export type ServiceForm = 'cluster' | 'headless' | 'external';

export interface ServiceFact {
  readonly about: 'service';
  readonly namespace: string;
  readonly name: string;
  /** Null if the service was deleted. */
  readonly form: ServiceForm | null;
  /** Encoded addresses (`encodeAddresses`). */
  readonly addresses: string;
  readonly ports: string;
  readonly external: string;
  /** External addresses and host names, separated by spaces. Set only if a plugin needs them. */
  readonly outside?: string;
}

export interface SliceFact {
  readonly about: 'slice';
  readonly namespace: string;
  readonly name: string;
  /** The service that the slice belongs to, or empty; meaningless if `endpoints` is null. */
  readonly service: string;
  readonly imported: string;
  readonly cluster: string;
  /** `NAME/PROTOCOL/PORT`, separated by commas (`printPorts`). */
  readonly ports: string;
  /** The ready endpoints in encoded form (`encodeEndpoints`), or null if the slice was deleted. */
  readonly endpoints: string | null;
  /** Time of the change in milliseconds since 1970, or 0 if it was not measured. */
  readonly triggeredAt: number;
}

export interface ImportFact {
  readonly about: 'import';
  readonly namespace: string;
  readonly name: string;
  readonly form: 'cluster' | 'headless' | null;
  readonly addresses: string;
  readonly ports: string;
}

/** All information about the pods at an address. The pods themselves stay on the main thread (pods.ts). */
export interface AddressFact {
  readonly about: 'address';
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

/** A node's zone, and the addresses that the node and its pods send from. */
export interface NodeFact {
  readonly about: 'node';
  /** `placeHash` of the node's name. */
  readonly node: string;
  /** `placeHash` of the node's zone, or empty if it has none. */
  readonly zone: string;
  /** The prefixes in encoded form (`encodePrefixes`), or null if the node was deleted. */
  readonly prefixes: string | null;
}

/**
 * Time of the facts that follow, in Unix seconds. It becomes the zone's serial as soon as one of them changes anything.
 */
export interface TimeFact {
  readonly about: 'time';
  readonly at: number;
}

export interface SerialsFact {
  readonly about: 'serials';
  readonly own: number;
  readonly imported: number;
}

export interface ListedFact {
  readonly about: 'listed';
}

/**
 * A worker's acknowledgement of a batch. For the programming latency, it contains the times of the changes by kind of
 * service, in milliseconds since 1970. They are undefined if they were not measured.
 */
export type TriggerTimes =
  | { readonly cluster: readonly number[]; readonly headless: readonly number[] }
  | undefined;
