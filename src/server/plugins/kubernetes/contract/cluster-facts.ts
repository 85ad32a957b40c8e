/**
 * What the control part tells the workers about the cluster: one fact per object that came, changed
 * or went, cut down to what an answer needs. Addresses, host names and zones of endpoints are
 * encoded as strings of bytes (endpoint-encoding.ts): such a string survives a structured clone as
 * one copy, so that a worker takes in thousands of endpoints in the time of one query.
 */
export type ClusterFact =
  | NamespaceFact
  | ServiceFact
  | SliceFact
  | ImportFact
  | AddressFact
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
  /** null: the service is gone. */
  readonly form: ServiceForm | null;
  /** Encoded addresses (`encodeAddresses`). */
  readonly addresses: string;
  readonly ports: string;
  readonly external: string;
  /**
   * Addresses and host names by which it is reachable from outside, separated by spaces; only if a
   * plugin asks for them.
   */
  readonly outside?: string;
}

export interface SliceFact {
  readonly about: 'slice';
  readonly namespace: string;
  readonly name: string;
  /** The service it belongs to, or empty; of no meaning if `endpoints` is null. */
  readonly service: string;
  /** The imported service it belongs to, or empty. */
  readonly imported: string;
  readonly cluster: string;
  /** `NAME/PROTOCOL/PORT` separated by commas (`printPorts`). */
  readonly ports: string;
  /** Encoded ready endpoints (`encodeEndpoints`); null: the slice is gone. */
  readonly endpoints: string | null;
  /** When the change happened, milliseconds since 1970; 0 if that is not to be measured. */
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
}

/**
 * When the facts that follow were made: the zone's serial once one of them changes anything. Unix
 * time, seconds.
 */
export interface TimeFact {
  readonly about: 'time';
  readonly at: number;
}

/** The serials as they are: for a worker that was given everything at once. */
export interface SerialsFact {
  readonly about: 'serials';
  readonly own: number;
  readonly imported: number;
}

export interface ListedFact {
  readonly about: 'listed';
}

/**
 * What a worker says of a batch: when the changes that it brought in happened, by kind of service,
 * milliseconds since 1970; for the programming latency. Undefined: there is nothing to be measured.
 */
export type TriggerTimes =
  | { readonly cluster: readonly number[]; readonly headless: readonly number[] }
  | undefined;
