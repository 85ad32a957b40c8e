/**
 * Replies that arrive after the client closed its socket: the client’s kernel answers them with ICMP "port
 * unreachable", because the program has given up and closed its socket.
 */
import { CopiedBytes } from '../exchanges/copied-bytes.ts';
import { latencyOf, type SeenExchange } from '../exchanges/seen-exchange.ts';

/** A reply that comes sooner is not late: the client took that of another server, milliseconds. */
const LATE_MS = 400;
/** Late replies that may be rejected; with more, all are forgotten. */
const LATE_MAX = 5000;
const REJECTED_MAX = 2000;
/** Of one socket. */
const OF_PORT_MAX = 8;
/** The kernel rejects a packet at once, milliseconds. */
const AT_ONCE_MS = 100;
/** Clients, and of each the times of its last queries, that are known. */
const CLIENTS_MAX = 1000;
const TIMES_MAX = 32;

/** A late reply, and for how long its client waited. */
export interface RejectedReply {
  readonly exchange: SeenExchange;
  /** Milliseconds until the client asked for something else; Infinity: it did not. */
  readonly waitedMs: number;
}

/** Collects late replies that the client’s kernel rejects. */
export class GivenUp {
  readonly rejected: RejectedReply[] = [];
  /** By the client’s address and port: those that came last. */
  readonly #late = new Map<string, SeenExchange[]>();
  readonly #times = new Map<string, { readonly sentMs: Float64Array; next: number }>();
  readonly #kept = new CopiedBytes();

  add(exchange: SeenExchange): void {
    const { client, sentMs } = exchange;
    this.#sent(client.address, sentMs);
    if ((latencyOf(exchange) ?? 0) < LATE_MS || exchange.protocol !== 'udp') return;
    if (this.#late.size >= LATE_MAX) this.#late.clear();
    this.#kept.keep(exchange);
    const key = `${client.address} ${client.port}`;
    const theirs = this.#late.get(key);
    if (theirs === undefined) this.#late.set(key, [exchange]);
    else if (theirs.push(exchange) > OF_PORT_MAX) theirs.shift();
  }

  /** Takes an ICMP error about a packet from a name server to this port. */
  unreachable(address: string, port: number, timeMs: number): void {
    if (this.#late.size === 0 || this.rejected.length >= REJECTED_MAX) return;
    const theirs = this.#late.get(`${address} ${port}`) ?? [];
    const at = theirs.findIndex(({ repliedMs }) => Math.abs(timeMs - repliedMs!) <= AT_ONCE_MS);
    if (at < 0) return;
    const [exchange] = theirs.splice(at, 1) as [SeenExchange];
    const { sentMs, repliedMs } = exchange;
    this.rejected.push({ exchange, waitedMs: this.#waited(address, sentMs, repliedMs!) });
  }

  #sent(client: string, sentMs: number): void {
    let times = this.#times.get(client);
    if (times === undefined) {
      if (this.#times.size >= CLIENTS_MAX) return;
      this.#times.set(client, (times = { sentMs: new Float64Array(TIMES_MAX), next: 0 }));
    }
    times.sentMs[times.next++ % TIMES_MAX] = sentMs;
  }

  /** How long after this time the client asked for something else. */
  #waited(client: string, fromMs: number, toMs: number): number {
    let least = Infinity;
    for (const ms of this.#times.get(client)?.sentMs ?? [])
      if (ms >= fromMs + LATE_MS && ms < toMs) least = Math.min(least, ms - fromMs);
    return least;
  }
}
