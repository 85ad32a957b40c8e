/** Segments that are retransmitted again and again, so they never arrive: of DNS servers and of other programs. */
import { listed, share } from '../texts.ts';
import { STUCK_CONNECTIONS, STUCK_SEGMENT } from '../thresholds/transport.ts';
import { BoundedMap } from './bounded-map.ts';

const DIRECTIONS_MAX = 20_000;

interface Direction {
  readonly from: string;
  readonly port: number;
  readonly to: string;
  /** The sequence number after the last byte that was sent. */
  next: number;
  /** The segment that is retransmitted: its number, size, time and how often. */
  sequence: number;
  bytes: number;
  lastMs: number;
  times: number;
}

/** A sender whose large segments do not arrive. */
export interface StuckSender {
  readonly address: string;
  readonly port: number;
  readonly to: string;
  /** Its connections with data to this receiver, and those on which a segment is retransmitted. */
  readonly connections: number;
  readonly stuck: number;
  /** The size of the smallest of these segments, and the most retransmissions of one. */
  readonly bytes: number;
  readonly times: number;
}

/** Retransmissions, apart from those of DNS. */
export class StuckConnections {
  readonly #directions = new Map<string, Direction>();

  /** A segment with data. Copies of a packet, on its way through a node, follow at once. */
  segment(
    from: string,
    port: number,
    to: string,
    toPort: number,
    {
      sequence,
      size,
      timeMs,
    }: { readonly sequence: number; readonly size: number; readonly timeMs: number },
  ): void {
    const key = `${from} ${port} ${to} ${toPort}`;
    const end = (sequence + size) >>> 0;
    const known = this.#directions.get(key);
    if (known === undefined) {
      if (this.#directions.size >= DIRECTIONS_MAX) return;
      const none = { sequence: -1, bytes: 0, lastMs: -Infinity, times: 0 };
      this.#directions.set(key, { from, port, to, next: end, ...none });
      return;
    }
    // Sequence numbers wrap around at 2^32 (RFC 9293, section 3.4).
    if (((end - known.next) | 0) > 0) {
      known.next = end;
      return;
    }
    if (size < STUCK_SEGMENT.bytes) return;
    if (known.sequence !== sequence) {
      known.sequence = sequence;
      known.bytes = size;
      known.times = 1;
    } else if (timeMs - known.lastMs >= STUCK_SEGMENT.timerMs) known.times++;
    known.lastMs = timeMs;
  }

  /** Senders that retransmit on several connections, too often for chance; the most affected ones first. */
  get list(): readonly StuckSender[] {
    const all = [...this.#directions.values()];
    const bySender = Map.groupBy(all, ({ from, port, to }) => `${from} ${port} ${to}`);
    return [...bySender.values()]
      .flatMap((theirs) => {
        const stuck = theirs.filter(({ times }) => times >= STUCK_SEGMENT.times);
        if (stuck.length < STUCK_CONNECTIONS) return [];
        const [{ from, port, to }] = stuck as [Direction];
        return {
          ...{ address: from, port, to, connections: theirs.length, stuck: stuck.length },
          bytes: Math.min(...stuck.map(({ bytes }) => bytes)),
          times: Math.max(...stuck.map(({ times }) => times)),
        };
      })
      .toSorted((one, other) => other.stuck - one.stuck);
  }

  clear(): void {
    this.#directions.clear();
  }
}

/** Describes the retransmissions of one sender. */
export function stuckText({
  address,
  port,
  to,
  connections,
  stuck,
  bytes,
  times,
}: StuckSender): string {
  return `On ${share(stuck, connections)} connections, ${address} port ${port} retransmitted the same segment of ${bytes} bytes or more to ${listed([to])}, up to ${times} times, although the connections had opened.`;
}

/** The reason, without a proof that these are only large segments. */
export const stuckWhy =
  'Large packets are lost on the path between the two, and no ICMP error reports it (a path MTU black hole). The MTU of a link or tunnel is smaller than the hosts assume (an overlay takes up 50 bytes or more).';

const SOCKETS_MAX = 5000;

/** The segments that a server retransmits on one connection. */
export interface StuckSegment {
  readonly client: string;
  lastMs: number;
  /** The number of retransmissions, each after its timer has expired. */
  times: number;
  /** The size of the shortest one. */
  bytes: number;
}

/** Retransmissions by the client’s end of the connection. */
export class StuckSegments {
  readonly #sockets = new BoundedMap<string, StuckSegment>(SOCKETS_MAX);

  /** Ignores copies of packets on their way to the client, which follow at once with the same end. */
  again(client: string, port: number, bytes: number, timeMs: number): void {
    if (bytes < STUCK_SEGMENT.bytes) return;
    const made = { client, lastMs: -Infinity, times: 0, bytes };
    const socket = this.#sockets.at(`${client} ${port}`, () => made);
    if (socket === null || timeMs - socket.lastMs < STUCK_SEGMENT.timerMs) return;
    socket.lastMs = timeMs;
    socket.times++;
    socket.bytes = Math.min(socket.bytes, bytes);
  }

  /** Connections on which the server retransmitted too often for chance. */
  get list(): readonly StuckSegment[] {
    return this.#sockets.list.filter(({ times }) => times >= STUCK_SEGMENT.times);
  }
}
