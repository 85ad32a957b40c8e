/**
 * Detects replies from an address other than the one queried, and whether clients accept them. If iptables sees bridged
 * packets on a node (`bridge-nf-call-iptables`), queries cross the bridge with a pod's translated address. Replies
 * cross it with the Service's restored address. That is normal. A client that rejects such replies retries. A client
 * that gets NXDOMAIN and immediately tries the next search domain has accepted the reply.
 */
import { RCODE } from '../../../server/wire/iana.ts';
import type { SeenExchange } from './seen-exchange.ts';

const ADDRESSES_MAX = 100;
const QUESTIONS_MAX = 5000;
/**
 * The minimum number of replies for a conclusion. If clients accept replies, they repeat no more than this share of the
 * questions.
 */
const LEAST = 5;
const AGAIN_MAX = 0.1;
/** The number of milliseconds after which Go retries from a new socket. */
const AGAIN_MS = { from: 4700, to: 5600 };

/** In milliseconds. After this, a decision is final, because a client that rejected the reply would have retried. */
const KNOWN_MS = 6000;
/** The number and share of search path steps that are enough to prove that replies are accepted. */
const WALKED = { least: 3, share: 0.3 };
/** Milliseconds from a reply to the next step, which is sooner than any resolver retries. */
const NEXT_MS = 100;

interface Answerer {
  /** The time of its first reply. */
  readonly fromMs: number;
  replies: number;
  again: number;
  /** Its NXDOMAIN replies, and how many of them were followed immediately by the next search domain. */
  absent: number;
  walked: number;
}

interface Absent {
  readonly name: string;
  readonly repliedMs: number;
  readonly by: string;
}

/** Servers that reply from another address. */
export class OtherAnswerers {
  readonly #answerers = new Map<string, Answerer>();
  /** For each client and question, when the reply came and where it came from. */
  readonly #questions = new Map<string, { readonly sentMs: number; readonly by: string }>();
  /** For each client and first label, the last name for which another address sent NXDOMAIN. */
  readonly #absent = new Map<string, Absent>();

  /**
   * Records a query that got a reply from another address.
   * @returns true if the client is already known to accept it
   */
  answered(exchange: SeenExchange, by: string): boolean {
    let answerer = this.#answerers.get(by);
    if (answerer === undefined) {
      if (this.#answerers.size >= ADDRESSES_MAX) return false;
      const { sentMs: fromMs } = exchange;
      answerer = { fromMs, replies: 0, again: 0, absent: 0, walked: 0 };
      this.#answerers.set(by, answerer);
    }
    // Errors are followed by a retry even if the reply was accepted.
    if (isError(exchange)) return this.#isKnown(by, exchange.sentMs);
    answerer.replies++;
    if (this.#isKnown(by, exchange.sentMs)) return true;
    if (exchange.rcode === RCODE.NXDOMAIN) this.#isAbsent(exchange, answerer, by);
    if (this.#questions.size < QUESTIONS_MAX)
      this.#questions.set(keyOf(exchange), { sentMs: exchange.sentMs, by });
    return false;
  }

  /**
   * Records a query.
   * @returns the address whose replies are now known to be accepted, or null if nothing changed
   */
  asked(exchange: SeenExchange): string | null {
    if (this.#questions.size === 0) return null;
    this.#askedAgain(exchange);
    const key = labelOf(exchange);
    const absent = this.#absent.get(key);
    if (absent === undefined || absent.name === exchange.name) return null;
    this.#absent.delete(key);
    const answerer = this.#answerers.get(absent.by);
    if (answerer === undefined || exchange.sentMs - absent.repliedMs > NEXT_MS) return null;
    const wasKnown = this.#isKnown(absent.by, exchange.sentMs);
    answerer.walked++;
    return !wasKnown && this.#isKnown(absent.by, exchange.sentMs) ? absent.by : null;
  }

  #isAbsent(exchange: SeenExchange, answerer: Answerer, by: string): void {
    const key = labelOf(exchange);
    const { name, sentMs, repliedMs } = exchange;
    if (this.#absent.get(key)?.name !== name) answerer.absent++;
    if (this.#absent.has(key) || this.#absent.size < QUESTIONS_MAX)
      this.#absent.set(key, { name, repliedMs: repliedMs ?? sentMs, by });
  }

  #isKnown(by: string, nowMs: number): boolean {
    const answerer = this.#answerers.get(by);
    if (answerer === undefined || !this.isTaken(by)) return false;
    const { fromMs, absent, walked } = answerer;
    const isWalked = walked >= WALKED.least && walked >= WALKED.share * absent;
    return isWalked || nowMs - fromMs >= KNOWN_MS;
  }

  #askedAgain(exchange: SeenExchange): void {
    const key = keyOf(exchange);
    const known = this.#questions.get(key);
    if (known === undefined) return;
    this.#questions.delete(key);
    const afterMs = exchange.sentMs - known.sentMs;
    if (afterMs >= AGAIN_MS.from && afterMs <= AGAIN_MS.to) this.#again(known.by);
  }

  /** Records that the same query was sent again from the same socket. */
  repeated(exchange: SeenExchange): void {
    if (!isError(exchange)) this.#again(exchange.stray?.address);
  }

  #again(by: string | undefined): void {
    const answerer = by === undefined ? undefined : this.#answerers.get(by);
    if (answerer !== undefined) answerer.again++;
  }

  /** True if clients accept replies from this address. */
  isTaken(by: string): boolean {
    const answerer = this.#answerers.get(by);
    return (
      answerer !== undefined &&
      answerer.replies >= LEAST &&
      answerer.again <= AGAIN_MAX * answerer.replies
    );
  }
}

/** True for an error that does not concern the name. */
export function isError({ rcode }: SeenExchange): boolean {
  return rcode !== RCODE.NOERROR && rcode !== RCODE.NXDOMAIN;
}

/** All names in a search start with the same label. */
function labelOf({ client, name }: SeenExchange): string {
  return `${client.address} ${name.slice(0, name.indexOf('.'))}`;
}

function keyOf({ client, type, name }: SeenExchange): string {
  return `${client.address} ${type} ${name}`;
}
