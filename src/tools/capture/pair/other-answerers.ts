/**
 * Replies that come from another address than was asked, and whether clients take them. On the
 * bridge of a node on which iptables sees bridged packets (`bridge-nf-call-iptables`) queries pass
 * with a pod's address, translated already, and their replies with that of the service, translated
 * back: nothing is wrong there. Who throws such replies away asks again; who is told that a name
 * does not exist, and at once asks for it with the next search domain, has taken the reply.
 */
import { RCODE } from '../../../server/wire/iana.ts';
import type { SeenExchange } from './seen-exchange.ts';

const ADDRESSES_MAX = 100;
/** Questions of which it is not known yet whether they come again. */
const QUESTIONS_MAX = 5000;
/**
 * Fewer replies say nothing; of those that are taken no more than this share of the questions comes
 * again.
 */
const LEAST = 5;
const AGAIN_MAX = 0.1;
/** Go takes a new socket when it asks again, after this time, milliseconds. */
const AGAIN_MS = { from: 4700, to: 5600 };

/**
 * Who is known for so long is known for good: whose replies are thrown away would have been asked
 * again, milliseconds.
 */
const KNOWN_MS = 6000;
/**
 * Next steps of search paths that show that replies are taken: so many, and such a share of what
 * could be followed by one.
 */
const WALKED = { least: 3, share: 0.3 };
/**
 * A next step comes within this time after the reply: no resolver asks again so soon, milliseconds.
 */
const NEXT_MS = 100;

interface Answerer {
  /** When it first answered. */
  readonly fromMs: number;
  replies: number;
  /** Of these, those whose question came again. */
  again: number;
  /**
   * Names that do not exist, by its replies, and those of them that were asked for with another
   * search domain at once.
   */
  absent: number;
  walked: number;
}

interface Absent {
  readonly name: string;
  readonly repliedMs: number;
  readonly by: string;
}

/** Those who answer what they were not asked. */
export class OtherAnswerers {
  readonly #answerers = new Map<string, Answerer>();
  /** By client and question: when, and by whom, it was answered. */
  readonly #questions = new Map<string, { readonly sentMs: number; readonly by: string }>();
  /**
   * By client and first label: the last name of which somebody else said that it does not exist.
   */
  readonly #absent = new Map<string, Absent>();

  /**
   * Takes a query that somebody else answered, with that reply.
   * @returns whether it is known already that the client takes the reply
   */
  answered(exchange: SeenExchange, by: string): boolean {
    let answerer = this.#answerers.get(by);
    if (answerer === undefined) {
      if (this.#answerers.size >= ADDRESSES_MAX) return false;
      const { sentMs: fromMs } = exchange;
      answerer = { fromMs, replies: 0, again: 0, absent: 0, walked: 0 };
      this.#answerers.set(by, answerer);
    }
    // Who gets an error asks again, though the reply was taken.
    if (isError(exchange)) return this.#isKnown(by, exchange.sentMs);
    answerer.replies++;
    if (this.#isKnown(by, exchange.sentMs)) return true;
    if (exchange.rcode === RCODE.NXDOMAIN) this.#isAbsent(exchange, answerer, by);
    if (this.#questions.size < QUESTIONS_MAX)
      this.#questions.set(keyOf(exchange), { sentMs: exchange.sentMs, by });
    return false;
  }

  /** Takes a query. @returns whose replies are now known to be taken; null: nothing new is known */
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

  /** The very query was sent again, from the same socket. */
  repeated(exchange: SeenExchange): void {
    if (!isError(exchange)) this.#again(exchange.stray?.address);
  }

  #again(by: string | undefined): void {
    const answerer = by === undefined ? undefined : this.#answerers.get(by);
    if (answerer !== undefined) answerer.again++;
  }

  /** Whether clients take what comes from this address. */
  isTaken(by: string): boolean {
    const answerer = this.#answerers.get(by);
    return (
      answerer !== undefined &&
      answerer.replies >= LEAST &&
      answerer.again <= AGAIN_MAX * answerer.replies
    );
  }
}

/** Whether the reply is an error that says nothing of the name. */
export function isError({ rcode }: SeenExchange): boolean {
  return rcode !== RCODE.NOERROR && rcode !== RCODE.NXDOMAIN;
}

/** The names of a walk begin alike. */
function labelOf({ client, name }: SeenExchange): string {
  return `${client.address} ${name.slice(0, name.indexOf('.'))}`;
}

function keyOf({ client, type, name }: SeenExchange): string {
  return `${client.address} ${type} ${name}`;
}
