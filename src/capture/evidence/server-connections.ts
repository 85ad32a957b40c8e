/** TCP connections to name servers: which were accepted, refused, or never answered however often the client tried. */
import { BoundedMap } from './bounded-map.ts';

/** Connections that are followed at a time; the oldest is let go. */
const OPENING_MAX = 20_000;
const PAIRS_MAX = 10_000;
/** A client tries for longer than this before it gives up: what is younger at the end of a capture may still be answered, milliseconds. */
const OPEN_MS = 3000;

/** The connections of one client to one server. */
export interface ConnectionPair {
  readonly client: string;
  readonly server: string;
  opened: number;
  accepted: number;
  refused: number;
  /** Never answered, and not refused. */
  silent: number;
}

interface Opening {
  readonly pair: ConnectionPair;
  readonly ms: number;
}

/** Follows connections from their first packet to what came of it. */
export class ServerConnections {
  readonly #pairs: BoundedMap<string, ConnectionPair> = new BoundedMap(PAIRS_MAX);
  readonly #opening = new Map<string, Opening>();
  /** The last first packet: who waits for TCP asks nothing meanwhile, so it may be later than all messages. */
  #lastMs = -Infinity;

  /** A first packet, or the same once more. @param ports of both ends, in this order */
  opening(client: string, server: string, ports: string, timeMs: number): void {
    const key = `${client} ${server} ${ports}`;
    this.#lastMs = Math.max(this.#lastMs, timeMs);
    if (this.#opening.has(key)) return;
    const made = { client, server, opened: 0, accepted: 0, refused: 0, silent: 0 };
    const pair = this.#pairs.at(`${client} ${server}`, () => made);
    if (pair === null) return;
    pair.opened++;
    this.#opening.set(key, { pair, ms: timeMs });
    if (this.#opening.size <= OPENING_MAX) return;
    const [[oldest, { pair: theirs }]] = this.#opening as unknown as [[string, Opening]];
    theirs.silent++;
    this.#opening.delete(oldest);
  }

  /** What came back to a first packet; after that nothing is counted of the connection. */
  replied(client: string, server: string, ports: string, isAccepted: boolean): void {
    const key = `${client} ${server} ${ports}`;
    const opening = this.#opening.get(key);
    if (opening === undefined) return;
    this.#opening.delete(key);
    if (isAccepted) opening.pair.accepted++;
    else opening.pair.refused++;
  }

  /** All pairs, when the last message of the capture came at `messageMs`. */
  at(messageMs: number): readonly ConnectionPair[] {
    const lastMs = Math.max(messageMs, this.#lastMs);
    const silent = new Map<ConnectionPair, number>();
    for (const { pair, ms } of this.#opening.values())
      if (lastMs - ms >= OPEN_MS) silent.set(pair, (silent.get(pair) ?? 0) + 1);
    return this.#pairs.list.map((pair) => ({
      ...pair,
      silent: pair.silent + (silent.get(pair) ?? 0),
    }));
  }

  /** Connections that `client` opened. */
  of(client: string): number {
    return this.#pairs.list.reduce(
      (sum, pair) => (pair.client === client ? sum + pair.opened : sum),
      0,
    );
  }

  /** Whether the capture has any. */
  get any(): boolean {
    return this.#pairs.size > 0;
  }
}
