/**
 * Replies whose question is spelled otherwise than the query's. Some resolvers draw the capitals of
 * a name by chance and take no reply that does not repeat them (draft-vixie-dnsext-dns0x20): what
 * looks answered is thrown away, and asked for again.
 */
import { HEADER } from '../../wire/iana.ts';
import { CopiedBytes } from '../exchanges/copied-bytes.ts';
import { latencyOf, type SeenExchange } from '../exchanges/seen-exchange.ts';

/** So long after a reply the same question is still the same attempt to learn it, milliseconds. */
const AGAIN_MS = 8000;
/** Questions that are waited for; when there are more, all are forgotten. */
const WAITING_MAX = 5000;
const IGNORED_MAX = 5000;

/** A reply that its client did not take. */
export interface IgnoredReply {
  readonly exchange: SeenExchange;
  /** How long after the reply the client asked again, milliseconds. */
  readonly againMs: number;
}

/** Which replies changed the capitals of their question, and which of them were asked for again. */
export class QuestionCase {
  /** Replies to questions with capitals. */
  asked: number = 0;
  /** Of these, with a question that is spelled otherwise. */
  changed: number = 0;
  readonly ignored: IgnoredReply[] = [];
  readonly #waiting = new Map<string, SeenExchange>();
  readonly #kept = new CopiedBytes();

  add(exchange: SeenExchange): void {
    const { capitals, client, name, type, sentMs } = exchange;
    if (!capitals && this.#waiting.size === 0) return;
    const key = `${client.address} ${type} ${name}`;
    const before = this.#waiting.get(key);
    if (before !== undefined) {
      this.#waiting.delete(key);
      const againMs = sentMs - before.sentMs - latencyOf(before)!;
      const again = againMs >= 0 && againMs < AGAIN_MS && isAnotherTry(before, exchange);
      if (again && this.ignored.length < IGNORED_MAX)
        this.ignored.push({ exchange: before, againMs });
    }
    if (!capitals || exchange.reply === null) return;
    this.asked++;
    if (!isRespelled(exchange)) return;
    this.changed++;
    if (this.#waiting.size >= WAITING_MAX) this.#waiting.clear();
    this.#kept.keep(exchange);
    this.#waiting.set(key, exchange);
  }
}

/**
 * The same id again (c-ares takes another port), or other capitals: a new lookup of a name that a
 * program spells so has another id and the same capitals.
 */
function isAnotherTry(one: SeenExchange, other: SeenExchange): boolean {
  return one.id === other.id || isSpelledOtherwise(one.query, other.query);
}

/** Whether the reply's question differs in its capitals; both are known to be the same name. */
function isRespelled({ query, reply }: SeenExchange): boolean {
  const hasQuestion = reply![4] !== 0 || reply![5] !== 0;
  return hasQuestion && isSpelledOtherwise(query, reply!);
}

function isSpelledOtherwise(one: Uint8Array, other: Uint8Array): boolean {
  for (let at = HEADER.SIZE; at < one.length && at < other.length; at++) {
    if (one[at] !== other[at]) return true;
    if (one[at] === 0) return false;
  }
  return false;
}
