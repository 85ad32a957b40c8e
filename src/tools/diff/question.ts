/** The questions sent to both configurations, and how each one responds. */

export interface DiffQuestion {
  /** Absolute, as sent. */
  readonly name: string;
  readonly type: number;
  /** 1 = IN, 3 = CH. */
  readonly class: number;
  /** The client's IP address. */
  readonly client: string;
  /** The address to query, or `''` for any address without a `bind`. */
  readonly address: string;
  readonly port: number;
  readonly proto: 'udp' | 'tcp';
  /** The largest UDP reply that the client accepts, or 0 if it sends no OPT. */
  readonly udpSize: number;
  readonly dnssecOk: boolean;
}

/** A record in presentation format. */
export interface PrintedRecord {
  readonly name: string;
  readonly type: string;
  readonly ttl: number;
  readonly data: string;
}

export interface QueryOutcome {
  /** A mnemonic, `silence` if there was no reply at all, or `no server` if nothing is listening. */
  readonly rcode: string;
  /** The flags that are set, out of `aa`, `tc`, `ra` and `ad`. */
  readonly flags: readonly string[];
  readonly answer: readonly PrintedRecord[];
  readonly authority: readonly PrintedRecord[];
  readonly additional: readonly PrintedRecord[];
  /** The upstreams that were queried, as spelled in the Corefile. If a forward has several, all of them are listed. */
  readonly upstreams: readonly string[];
  /** The number of queries to upstreams. */
  readonly asked: number;
  /** The server block that handled the query, as its zone and view, or `''` if there is none. */
  readonly block: string;
  /** The plugin that answered, which is the last one to see the query. */
  readonly plugin: string;
}
