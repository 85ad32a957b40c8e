/**
 * Messages from the control part to the workers about the cluster: one fact per object that was added,
 * changed or removed, with only the fields that DNS needs. Addresses, host names and zones of
 * endpoints are encoded as strings of bytes (endpoint-encoding.ts), which a structured clone copies
 * at once. So a worker applies thousands of endpoints in the time of one query.
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
  /** null: the service was deleted. */
  readonly form: ServiceForm | null;
  /** Encoded addresses (`encodeAddresses`). */
  readonly addresses: string;
  readonly ports: string;
  readonly external: string;
  /** External addresses and host names, separated by spaces; only if a plugin needs them. */
  readonly outside?: string;
}

export interface SliceFact {
  readonly about: 'slice';
  readonly namespace: string;
  readonly name: string;
  /** The service it belongs to, or empty; of no meaning if `endpoints` is null. */
  readonly service: string;
  readonly imported: string;
  readonly cluster: string;
  /** `NAME/PROTOCOL/PORT` separated by commas (`printPorts`). */
  readonly ports: string;
  /** Encoded ready endpoints (`encodeEndpoints`); null: the slice was deleted. */
  readonly endpoints: string | null;
  /** Time of the change, milliseconds since 1970; 0 if it is not measured. */
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

/**
 * All that is known of the pods at one address; pods themselves stay on the main thread (pods.ts).
 */
export interface AddressFact {
  readonly about: 'address';
  /** 4 or 16 bytes. */
  readonly address: string;
  /** The namespace of each live pod whose first address this is. */
  readonly namespaces: readonly string[];
  /** The namespace of the pod that sends from this address; empty if it is ambiguous. */
  readonly client: string;
  /**
   * True if it is the address of a node, from which pods on the host network and the node's own
   * programs send.
   */
  readonly host?: true;
  /** Name and labels of the one pod that sends from here; only where metadata or top wants them. */
  readonly pod?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** The node of the pods that send from here (`placeHash`); absent if unknown or not wanted. */
  readonly node?: string;
}

/** A node's zone, and the addresses from which it and its pods send. */
export interface NodeFact {
  readonly about: 'node';
  /** `placeHash` of its name. */
  readonly node: string;
  /** `placeHash` of its zone; empty if it has none. */
  readonly zone: string;
  /** Encoded prefixes (`encodePrefixes`); null: the node is gone. */
  readonly prefixes: string | null;
}

/** Time of the following facts: the zone's serial once one of them changes anything. Unix time, seconds. */
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
 * A worker's acknowledgement of a batch: the times of its changes by kind of service, milliseconds since
 * 1970, for the programming latency. Undefined: not measured.
 */
export type TriggerTimes =
  | { readonly cluster: readonly number[]; readonly headless: readonly number[] }
  | undefined;
