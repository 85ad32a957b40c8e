/**
 * Replies that come from another address than was asked, and whether clients take them. On the bridge of a node on which iptables sees bridged
 * packets (`bridge-nf-call-iptables`) queries pass with a pod's address, translated already, and their replies with that of the service,
 * translated back: nothing is wrong there. Who throws such replies away asks again.
 */
import type { SeenExchange } from './seen-exchange.ts';

const ADDRESSES_MAX = 100;
/** Questions of which it is not known yet whether they come again. */
const QUESTIONS_MAX = 5000;
/** Fewer replies say nothing; of those that are taken no more than this share of the questions comes again. */
const LEAST = 5;
const AGAIN_MAX = 0.1;
/** Go takes a new socket when it asks again, after this time, milliseconds. */
const AGAIN_MS = { from: 4700, to: 5600 };

/** Who is known for so long is known for good: whose replies are thrown away would have been asked again, milliseconds. */
const KNOWN_MS = 6000;

interface Answerer {
  /** When it first answered. */
  readonly fromMs: number;
  replies: number;
  /** Of these, those whose question came again. */
  again: number;
}

/** Those who answer what they were not asked. */
export class OtherAnswerers {
  readonly #answerers = new Map<string, Answerer>();
  /** By client and question: when, and by whom, it was answered. */
  readonly #questions = new Map<string, { readonly sentMs: number; readonly by: string }>();

  /** Takes a query that somebody else answered. @returns whether it is known already that the client takes the reply */
  answered(exchange: SeenExchange, by: string): boolean {
    let answerer = this.#answerers.get(by);
    if (answerer === undefined) {
      if (this.#answerers.size >= ADDRESSES_MAX) return false;
      answerer = { fromMs: exchange.sentMs, replies: 0, again: 0 };
      this.#answerers.set(by, answerer);
    }
    answerer.replies++;
    if (exchange.sentMs - answerer.fromMs >= KNOWN_MS && this.isTaken(by)) return true;
    if (this.#questions.size < QUESTIONS_MAX)
      this.#questions.set(keyOf(exchange), { sentMs: exchange.sentMs, by });
    return false;
  }

  /** Takes a query. */
  asked(exchange: SeenExchange): void {
    if (this.#questions.size === 0) return;
    const key = keyOf(exchange);
    const known = this.#questions.get(key);
    if (known === undefined) return;
    this.#questions.delete(key);
    const afterMs = exchange.sentMs - known.sentMs;
    if (afterMs >= AGAIN_MS.from && afterMs <= AGAIN_MS.to) this.repeated(known.by);
  }

  /** The very query was sent again, from the same socket. */
  repeated(by: string): void {
    const answerer = this.#answerers.get(by);
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

function keyOf({ client, type, name }: SeenExchange): string {
  return `${client.address} ${type} ${name}`;
}
