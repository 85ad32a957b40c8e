/** Round-trip times to servers, from the fastest replies and TCP handshakes. */
import { median } from './median.ts';
import { addressOf, latencyOf, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { BoundedMap } from './bounded-map.ts';
import { PairMap } from './pair-map.ts';
import { COPY_MS, SLOW_PATH } from '../thresholds/transport.ts';

const PAIRS_MAX = 2000;
/** The most times stored for each pair and client. */
const TIMES_MAX = 200;
const OPENING_MAX = 5000;

/** One client’s reply times from one server, milliseconds. */
interface PairTimes {
  readonly client: string;
  readonly server: string;
  readonly replies: number[];
}

/** A path whose round-trip time explains the reply times. */
export interface SlowPath {
  /** The fastest and the median reply, milliseconds. */
  readonly fastestMs: number;
  readonly usualMs: number;
  /** TCP handshakes by the same clients, which no DNS server delays; 0 if none was seen. */
  readonly handshakes: number;
  readonly handshakeMs: number;
  /** Replies seen at the server itself, and their times there; 0 if none was seen. */
  readonly inside: number;
  readonly insideMs: number;
}

export class PathTimes {
  readonly #pairs: PairMap<string, string, PairTimes> = new PairMap(PAIRS_MAX);
  /** Handshake times by client, milliseconds. */
  readonly #handshakes: BoundedMap<string, number[]> = new BoundedMap(PAIRS_MAX);
  /** The time between a query's arrival at a second place and its reply there, by server. */
  readonly #inside: BoundedMap<string, number[]> = new BoundedMap(PAIRS_MAX);
  readonly #opening = new Map<string, number>();

  exchange(exchange: SeenExchange): void {
    const took = latencyOf(exchange);
    if (took === null || exchange.logged !== undefined) return;
    const { client, hops } = exchange;
    const server = addressOf(exchange.server);
    const pair = this.#pairs.at(client.address, server, newPair);
    if (pair !== null) push(pair.replies, took);
    const last = hops.at(-1);
    if (last?.repliedMs === null || last === undefined) return;
    const inside = this.#inside.at(server, () => []);
    if (inside !== null) push(inside, last.repliedMs - last.sentMs);
  }

  /** Records a TCP connection’s first packet or its retransmission. */
  opening(client: string, port: number, server: string, serverPort: number, timeMs: number): void {
    const key = `${client} ${port} ${server} ${serverPort}`;
    const known = this.#opening.get(key);
    if (known !== undefined && timeMs - known < COPY_MS) return;
    // The reply to a retransmitted packet gives no usable time.
    if (known !== undefined) {
      this.#opening.set(key, NaN);
      return;
    }
    if (this.#opening.size >= OPENING_MAX) this.#opening.clear();
    this.#opening.set(key, timeMs);
  }

  opened(client: string, port: number, server: string, serverPort: number, timeMs: number): void {
    const key = `${client} ${port} ${server} ${serverPort}`;
    const sentMs = this.#opening.get(key);
    if (sentMs === undefined) return;
    this.#opening.delete(key);
    if (Number.isNaN(sentMs)) return;
    const times = this.#handshakes.at(client, () => []);
    if (times !== null) push(times, timeMs - sentMs);
  }

  /**
   * The path to a server whose replies all take about the same time, mostly in transit. Null if they
   * do not, or too few are known.
   */
  of(server: string): SlowPath | null {
    const pairs = this.#pairs.list.filter(
      (pair) => pair.server === server && pair.replies.length >= SLOW_PATH.replies,
    );
    const far = pairs.filter(({ replies }) => {
      const fastest = Math.min(...replies);
      const isPath = fastest >= SLOW_PATH.ms && fastest <= SLOW_PATH.mostMs;
      return isPath && median(replies) <= SLOW_PATH.spread * fastest;
    });
    const counted = (list: readonly PairTimes[]): number =>
      list.reduce((sum, { replies }) => sum + replies.length, 0);
    if (far.length === 0 || counted(far) < SLOW_PATH.share * counted(pairs)) return null;
    const replies = far.flatMap((pair) => pair.replies);
    const clients = new Set(far.map(({ client }) => client));
    const fastestMs = Math.min(...replies);
    const handshakes = [...clients].flatMap((client) => this.#handshakes.get(client) ?? []);
    const inside = this.#inside.get(server) ?? [];
    return {
      fastestMs,
      usualMs: median(replies),
      handshakes: handshakes.length,
      handshakeMs: handshakes.length === 0 ? 0 : median(handshakes),
      inside: inside.length,
      insideMs: inside.length === 0 ? 0 : median(inside),
    };
  }

  clear(): void {
    this.#pairs.clear();
    this.#handshakes.clear();
    this.#inside.clear();
    this.#opening.clear();
  }
}

/** True if something other than DNS replies shows that the path takes the time. */
export function isProven({
  usualMs,
  handshakes,
  handshakeMs,
  inside,
  insideMs,
}: SlowPath): boolean {
  const byTcp =
    handshakes >= SLOW_PATH.handshakes && handshakeMs >= SLOW_PATH.handshakeShare * usualMs;
  const byServer = inside >= SLOW_PATH.replies && insideMs <= SLOW_PATH.insideShare * usualMs;
  return byTcp || byServer;
}

const newPair = (client: string, server: string): PairTimes => ({ client, server, replies: [] });

function push(times: number[], ms: number): void {
  if (times.length < TIMES_MAX) times.push(ms);
}
