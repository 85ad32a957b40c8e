/**
 * Messages about the cluster from the control part to the workers. Each added, changed or removed object is one fact
 * with only the fields that DNS needs. Endpoints' addresses, host names and zones are encoded as byte strings
 * (endpoint-encoding.ts), which a structured clone copies at once. A worker can therefore apply thousands of endpoints
 * in the time of one query.
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
  /** External addresses and host names, separated by spaces. Only set if a plugin needs them. */
  readonly outside?: string;
}

export interface SliceFact {
  readonly about: 'slice';
  readonly namespace: string;
  readonly name: string;
  /** The slice's service, or empty; meaningless if `endpoints` is null. */
  readonly service: string;
  readonly imported: string;
  readonly cluster: string;
  /** `NAME/PROTOCOL/PORT`, separated by commas (`printPorts`). */
  readonly ports: string;
  /** Encoded ready endpoints (`encodeEndpoints`), or null if the slice was deleted. */
  readonly endpoints: string | null;
  /** Time of the change in milliseconds since 1970; 0 if not measured. */
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

/** All information about the pods at one address. Pods themselves stay on the main thread (pods.ts). */
export interface AddressFact {
  readonly about: 'address';
  /** 4 or 16 bytes. */
  readonly address: string;
  /** The namespaces of the live pods whose first address this is. */
  readonly namespaces: readonly string[];
  /** The namespace of the pod that sends from this address, or empty if ambiguous. */
  readonly client: string;
  /** True for a node's address, which is used by the node's own programs and by pods on the host network. */
  readonly host?: true;
  /** Name and labels of the only pod that sends from here, if metadata or top needs them. */
  readonly pod?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** The node of the pods that send from here (`placeHash`); absent if unknown or not needed. */
  readonly node?: string;
}

/** A node's zone, and the addresses that it and its pods send from. */
export interface NodeFact {
  readonly about: 'node';
  /** `placeHash` of the node's name. */
  readonly node: string;
  /** `placeHash` of its zone; empty if it has none. */
  readonly zone: string;
  /** Encoded prefixes (`encodePrefixes`), or null if the node was deleted. */
  readonly prefixes: string | null;
}

/** Time of the following facts in Unix seconds. It becomes the zone's serial once one of them changes anything. */
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
 * A worker's acknowledgement of a batch. Contains the times of its changes by kind of service, in milliseconds since
 * 1970, for the programming latency; undefined if not measured.
 */
export type TriggerTimes =
  | { readonly cluster: readonly number[]; readonly headless: readonly number[] }
  | undefined;
