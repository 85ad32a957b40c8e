/**
 * TCP connections to name servers: which were accepted, refused, or never answered however often
 * the client tried.
 */
import { BoundedMap } from './bounded-map.ts';
import { ReusedConnections } from './reused-connections.ts';
import {
  CONNECT_LATE_MS,
  CONNECT_OPEN_MS,
  MIN_FAILED_CONNECTIONS,
  MIN_UNANSWERED_FIRST_PACKETS,
} from '../thresholds/transport.ts';

/** Connections that are followed at a time; the oldest is dropped. */
const OPENING_MAX = 20_000;
const PAIRS_MAX = 10_000;
/** Times that are remembered of one pair. */
const TIMES_MAX = 500;

/** The connections of one client to one server. */
export interface ConnectionPair {
  readonly client: string;
  readonly server: string;
  opened: number;
  accepted: number;
  refused: number;
  /** Never answered, and not refused. */
  silent: number;
  /** First packets of silent connections, repeats included. */
  unanswered: number;
  /**
   * Accepted when the first packet had been repeated more than once: for so long nothing came
   * through.
   */
  late: number;
  /**
   * The times at which the first and the last connection was opened that was not accepted; Infinity
   * and -Infinity: all were accepted.
   */
  failedFromMs: number;
  failedToMs: number;
  /** The times at which the first accepted ones were opened. */
  readonly acceptedMs: number[];
}

/** Connections of one client to one server that were accepted, and that neither side has closed. */
export interface OpenConnections {
  readonly client: string;
  readonly server: string;
  /** The times at which they were opened, in this order. */
  readonly sinceMs: readonly number[];
  readonly closed: number;
}

function failedAt(pair: ConnectionPair, ms: number): void {
  pair.failedFromMs = Math.min(pair.failedFromMs, ms);
  pair.failedToMs = Math.max(pair.failedToMs, ms);
}

interface Opening {
  readonly pair: ConnectionPair;
  readonly ms: number;
  packets: number;
}

/** Counts connections that were refused, or accepted late or not at all. */
export function failedOf({ refused, silent, late }: ConnectionPair): number {
  return refused + silent + late;
}

/** True if more connections, or first packets of one connection, fail than chance explains. */
export function failsOften(pair: ConnectionPair): boolean {
  return (
    failedOf(pair) >= MIN_FAILED_CONNECTIONS || pair.unanswered >= MIN_UNANSWERED_FIRST_PACKETS
  );
}

/** Follows connections from their first packet to what came of it. */
export class ServerConnections {
  readonly reused: ReusedConnections = new ReusedConnections();
  readonly #pairs: BoundedMap<string, ConnectionPair> = new BoundedMap(PAIRS_MAX);
  readonly #opening = new Map<string, Opening>();
  /** The number of accepted connections that were closed. */
  readonly #closed = new Map<ConnectionPair, number>();
  /** Connections that were accepted and not closed, by both addresses and ports. */
  readonly #open = new Map<string, { readonly pair: ConnectionPair; readonly ms: number }>();
  /**
   * The last first packet: a client that waits for TCP sends nothing, so it may be later than all
   * messages.
   */
  #lastMs = -Infinity;
  /** The connections of the whole capture, if these are those of a part. */
  #whole: ServerConnections | null = null;

  /** A first packet, or its repeat. @param ports of both ends, in this order */
  opening(client: string, server: string, ports: string, timeMs: number): void {
    const key = `${client} ${server} ${ports}`;
    this.#lastMs = Math.max(this.#lastMs, timeMs);
    const repeated = this.#opening.get(key);
    if (repeated !== undefined) {
      repeated.packets++;
      return;
    }
    const made = {
      ...{ client, server, opened: 0, accepted: 0, refused: 0, silent: 0, late: 0, unanswered: 0 },
      ...{ failedFromMs: Infinity, failedToMs: -Infinity, acceptedMs: [] },
    };
    const pair = this.#pairs.at(`${client} ${server}`, () => made);
    if (pair === null) return;
    pair.opened++;
    this.#opening.set(key, { pair, ms: timeMs, packets: 1 });
    if (this.#opening.size <= OPENING_MAX) return;
    const [[oldest, { pair: theirs, ms, packets }]] = this.#opening as unknown as [
      [string, Opening],
    ];
    theirs.silent++;
    theirs.unanswered += packets;
    failedAt(theirs, ms);
    this.#opening.delete(oldest);
  }

  /** The reply to a first packet; after that the connection is not counted. */
  replied(
    client: string,
    server: string,
    ports: string,
    isAccepted: boolean,
    timeMs: number,
  ): void {
    const key = `${client} ${server} ${ports}`;
    if (!isAccepted) this.#close(key);
    const opening = this.#opening.get(key);
    if (opening === undefined) return;
    this.#opening.delete(key);
    const { pair, ms } = opening;
    if (isAccepted && this.#open.size < OPENING_MAX) this.#open.set(key, { pair, ms });
    if (isAccepted && timeMs - ms >= CONNECT_LATE_MS) {
      pair.late++;
      failedAt(pair, ms);
    } else if (isAccepted) {
      pair.accepted++;
      if (pair.acceptedMs.length < TIMES_MAX) pair.acceptedMs.push(ms);
    } else {
      pair.refused++;
      failedAt(pair, ms);
    }
  }

  /** All pairs, when the last message of the capture came at `messageMs`. */
  at(messageMs: number): readonly ConnectionPair[] {
    const lastMs = Math.max(messageMs, this.#lastMs);
    const silent = Map.groupBy(
      [...this.#opening.values()].filter(({ ms }) => lastMs - ms >= CONNECT_OPEN_MS),
      ({ pair }) => pair,
    );
    return this.#pairs.list.map((pair) => {
      const open = silent.get(pair) ?? [];
      return {
        ...pair,
        acceptedMs: [...this.#earlier(pair), ...pair.acceptedMs],
        silent: pair.silent + open.length,
        unanswered: open.reduce((sum, { packets }) => sum + packets, pair.unanswered),
        failedFromMs: open.reduce((least, { ms }) => Math.min(least, ms), pair.failedFromMs),
        failedToMs: open.reduce((most, { ms }) => Math.max(most, ms), pair.failedToMs),
      };
    });
  }

  /** Called when one side closed or reset the connection. */
  ended(from: string, fromPort: number, to: string, toPort: number): void {
    this.#close(`${from} ${to} ${fromPort} ${toPort}`);
    this.#close(`${to} ${from} ${toPort} ${fromPort}`);
  }

  #close(key: string): void {
    const pair = this.#open.get(key)?.pair;
    if (pair === undefined) return;
    this.#open.delete(key);
    this.#closed.set(pair, (this.#closed.get(pair) ?? 0) + 1);
  }

  /** Adds what the whole capture shows about connections that were opened before this part. */
  know(whole: ServerConnections): void {
    this.#whole = whole;
  }

  /** The times at which accepted connections were opened before the part began. */
  #earlier({ client, server, acceptedMs, failedFromMs }: ConnectionPair): readonly number[] {
    const firstMs = acceptedMs.reduce((least, ms) => Math.min(least, ms), failedFromMs);
    if (this.#whole === null) return [];
    const all = this.#whole.#pairs.get(`${client} ${server}`)?.acceptedMs ?? [];
    return all.filter((ms) => ms < firstMs);
  }

  /** The connections that are still open, by client and server. */
  get open(): readonly OpenConnections[] {
    if (this.#whole !== null) return this.#whole.open;
    const byPair = Map.groupBy(this.#open.values(), ({ pair }) => pair);
    return [...byPair].map(([pair, all]) => ({
      ...{ client: pair.client, server: pair.server, closed: this.#closed.get(pair) ?? 0 },
      sinceMs: all.map(({ ms }) => ms).toSorted((one, other) => one - other),
    }));
  }

  of(client: string): number {
    return this.#pairs.list.reduce(
      (sum, pair) => (pair.client === client ? sum + pair.opened : sum),
      0,
    );
  }

  get any(): boolean {
    return this.#pairs.size > 0;
  }
}
