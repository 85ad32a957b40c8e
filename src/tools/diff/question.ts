/** The questions to both configurations, and what each of them does with it. */

/** One query. */
export interface DiffQuestion {
  /** Absolute, as it is sent. */
  readonly name: string;
  readonly type: number;
  /** 1 = IN, 3 = CH. */
  readonly class: number;
  /** The client's IP address. */
  readonly client: string;
  /** The queried address; `''`: any that no bind names. */
  readonly address: string;
  readonly port: number;
  readonly proto: 'udp' | 'tcp';
  /** The largest reply over UDP that the client takes; 0: it sends no OPT. */
  readonly udpSize: number;
  readonly dnssecOk: boolean;
}

/** A record as people read it. */
export interface PrintedRecord {
  readonly name: string;
  readonly type: string;
  readonly ttl: number;
  readonly data: string;
}

export interface QueryOutcome {
  /** Mnemonic; `silence`: no reply at all; `no server`: nothing listens there. */
  readonly rcode: string;
  /** `aa`, `tc`, `ra`, `ad`: those that are set. */
  readonly flags: readonly string[];
  readonly answer: readonly PrintedRecord[];
  readonly authority: readonly PrintedRecord[];
  readonly additional: readonly PrintedRecord[];
  /** The queried upstreams, as the Corefile spells them; of several of one forward all. */
  readonly upstreams: readonly string[];
  /** The number of queries to upstreams. */
  readonly asked: number;
  /** The server block that took the query: its zone, and its view; `''`: none. */
  readonly block: string;
  /** The plugin that answered: the last one that saw the query. */
  readonly plugin: string;
}
