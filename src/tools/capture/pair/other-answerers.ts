/**
 * Detects replies from another address than the query went to, and whether clients accept them. On a node
 * where iptables sees bridged packets (`bridge-nf-call-iptables`), queries cross the bridge with
 * the translated address of a pod. Replies cross it with the restored address of the Service. That
 * is normal. A client that rejects such replies asks again. A client that gets NXDOMAIN and at once
 * tries the next search domain has accepted the reply.
 */
import { RCODE } from '../../../server/wire/iana.ts';
import type { SeenExchange } from './seen-exchange.ts';

const ADDRESSES_MAX = 100;
/** Questions that may still come again. */
const QUESTIONS_MAX = 5000;
/**
 * Replies below which nothing is concluded. If they are accepted, at most this share of the questions comes
 * again.
 */
const LEAST = 5;
const AGAIN_MAX = 0.1;
/** Milliseconds after which Go retries, from a new socket. */
const AGAIN_MS = { from: 4700, to: 5600 };

/** Milliseconds after which a decision is final: a rejected reply would have been followed by a retry. */
const KNOWN_MS = 6000;
/** The number and share of search path steps that prove that replies are accepted. */
const WALKED = { least: 3, share: 0.3 };
/** Milliseconds from a reply to the next step; no resolver retries so soon. */
const NEXT_MS = 100;

interface Answerer {
  /** The time of its first reply. */
  readonly fromMs: number;
  replies: number;
  /** The number of repeated queries. */
  again: number;
  /** Its NXDOMAIN replies, and those followed at once by the next search domain. */
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
  /** By client and question: the time and the source of the reply. */
  readonly #questions = new Map<string, { readonly sentMs: number; readonly by: string }>();
  /** By client and first label: the last name with NXDOMAIN from another address. */
  readonly #absent = new Map<string, Absent>();

  /**
   * Takes a query with a reply from another address.
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
    // An error is followed by a retry although the reply was accepted.
    if (isError(exchange)) return this.#isKnown(by, exchange.sentMs);
    answerer.replies++;
    if (this.#isKnown(by, exchange.sentMs)) return true;
    if (exchange.rcode === RCODE.NXDOMAIN) this.#isAbsent(exchange, answerer, by);
    if (this.#questions.size < QUESTIONS_MAX)
      this.#questions.set(keyOf(exchange), { sentMs: exchange.sentMs, by });
    return false;
  }

  /**
   * Takes a query.
   * @returns the address whose replies are now known to be accepted; null: nothing new
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

  /** The same query was sent again, from the same socket. */
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

/** The names of a walk have the same first label. */
function labelOf({ client, name }: SeenExchange): string {
  return `${client.address} ${name.slice(0, name.indexOf('.'))}`;
}

function keyOf({ client, type, name }: SeenExchange): string {
  return `${client.address} ${type} ${name}`;
}
