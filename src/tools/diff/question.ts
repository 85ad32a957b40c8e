/** The questions sent to both configurations, and how each handles them. */

export interface DiffQuestion {
  /** Absolute, as sent. */
  readonly name: string;
  readonly type: number;
  /** 1 = IN, 3 = CH. */
  readonly class: number;
  /** The client's IP address. */
  readonly client: string;
  /** The queried address; `''`: any that no `bind` names. */
  readonly address: string;
  readonly port: number;
  readonly proto: 'udp' | 'tcp';
  /** The largest UDP reply that the client accepts; 0: it sends no OPT. */
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
  /** Mnemonic; `silence`: no reply at all; `no server`: nothing is listening. */
  readonly rcode: string;
  /** The flags that are set, of `aa`, `tc`, `ra` and `ad`. */
  readonly flags: readonly string[];
  readonly answer: readonly PrintedRecord[];
  readonly authority: readonly PrintedRecord[];
  readonly additional: readonly PrintedRecord[];
  /** The queried upstreams, as the Corefile spells them. If a forward has several, all are listed. */
  readonly upstreams: readonly string[];
  /** The number of queries to upstreams. */
  readonly asked: number;
  /** The server block that handled the query: its zone and its view, or `''` if there is none. */
  readonly block: string;
  /** The plugin that answered: the last one to see the query. */
  readonly plugin: string;
}
