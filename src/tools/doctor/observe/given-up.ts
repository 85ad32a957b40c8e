/**
 * Replies that arrive after the program has given up and closed its socket: the client’s kernel
 * answers them with ICMP "port unreachable".
 */
import { CopiedBytes } from '../../capture/pair/copied-bytes.ts';
import { latencyOf, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { LATE_MS, SAME_MOMENT_MS } from '../thresholds/evidence.ts';

/** Late replies that may be rejected; with more, all are forgotten. */
const LATE_MAX = 5000;
const REJECTED_MAX = 2000;
/** Of one socket. */
const OF_PORT_MAX = 8;
/** Repeats of questions that are remembered. */
const REPEATED_MAX = 5000;

/** A late reply, and for how long its client waited. */
export interface RejectedReply {
  readonly exchange: SeenExchange;
  /** Milliseconds until the client repeated the question from the same port; Infinity: it did not. */
  readonly waitedMs: number;
}

/** Collects late replies that the client’s kernel rejects. */
export class GivenUp {
  readonly rejected: RejectedReply[] = [];
  /** By the client’s address and port: those that came last. */
  readonly #late = new Map<string, SeenExchange[]>();
  /** The last time of a question, and the shortest time until it was repeated. */
  readonly #repeated = new Map<string, { sentMs: number; waitedMs: number }>();
  readonly #kept = new CopiedBytes();

  add(exchange: SeenExchange): void {
    const { client } = exchange;
    this.#sent(exchange);
    if (!isLate(exchange) || exchange.protocol !== 'udp') return;
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
    const at = theirs.findIndex(({ repliedMs }) => Math.abs(timeMs - repliedMs!) <= SAME_MOMENT_MS);
    if (at < 0) return;
    const [exchange] = theirs.splice(at, 1) as [SeenExchange];
    this.rejected.push({
      exchange,
      waitedMs: this.#repeated.get(questionOf(exchange))?.waitedMs ?? Infinity,
    });
  }

  #sent(exchange: SeenExchange): void {
    const { sentMs, protocol, attempt, ending } = exchange;
    // Most questions are answered at once, and sent once.
    if (protocol !== 'udp' || (attempt === 1 && ending === 'answered' && !isLate(exchange))) return;
    const key = questionOf(exchange);
    const known = this.#repeated.get(key);
    if (known === undefined) {
      if (this.#repeated.size >= REPEATED_MAX) this.#repeated.clear();
      this.#repeated.set(key, { sentMs, waitedMs: Infinity });
      return;
    }
    const gap = Math.abs(sentMs - known.sentMs);
    if (gap > SAME_MOMENT_MS) known.waitedMs = Math.min(known.waitedMs, gap);
    known.sentMs = Math.max(known.sentMs, sentMs);
  }
}

function isLate(exchange: SeenExchange): boolean {
  return (latencyOf(exchange) ?? 0) >= LATE_MS;
}

/** A repeat has the port, the id and the server of the query before it. */
function questionOf({ client, server, id, type }: SeenExchange): string {
  return `${client.address} ${client.port} ${server.address} ${id} ${type}`;
}
