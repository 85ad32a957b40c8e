/**
 * Replies whose question is not spelled like the query's. Some resolvers choose a name's capitals at
 * random and accept only replies that repeat them (draft-vixie-dnsext-dns0x20). Others are dropped,
 * and the query is repeated although it looks answered.
 */
import { HEADER } from '../../../server/wire/iana.ts';
import { CopiedBytes } from '../../capture/pair/copied-bytes.ts';
import { latencyOf, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { MIN_HUMPS, SAME_ATTEMPT_MS } from '../thresholds/answers.ts';

/** The most waiting questions; with more, all are dropped. */
const WAITING_MAX = 5000;
const IGNORED_MAX = 5000;
/** The most names and clients whose spelling is stored and compared. */
const SPELLINGS_MAX = 5000;

/** A reply that its client did not accept. */
export interface IgnoredReply {
  readonly exchange: SeenExchange;
  /** The time from the reply to the retry, milliseconds. */
  readonly againMs: number;
}

/** Replies that changed the capitals of their question, and the repeated queries among them. */
export class QuestionCase {
  asked: number = 0;
  /** Of these, those whose question is spelled differently. */
  changed: number = 0;
  readonly #ignored: IgnoredReply[] = [];
  /** Repeats with another id and the same capitals: retries, if the client draws its capitals. */
  readonly #suspected: IgnoredReply[] = [];
  /** By client and name: the spelling that came first. */
  readonly #spellings = new Map<string, string>();
  /** Clients that choose their capitals at random. */
  readonly #drawing = new Set<string>();
  readonly #waiting = new Map<string, SeenExchange>();
  readonly #kept = new CopiedBytes();

  /** Mismatching replies whose clients repeated the query. */
  get ignored(): readonly IgnoredReply[] {
    const retries = this.#suspected.filter(({ exchange: { client } }) =>
      this.#drawing.has(client.address),
    );
    return [...this.#ignored, ...retries];
  }

  add(exchange: SeenExchange): void {
    const { capitals, client, name, type, sentMs } = exchange;
    if (!capitals && this.#waiting.size === 0) return;
    if (capitals) this.#readSpelling(exchange);
    const key = `${client.address} ${type} ${name}`;
    const before = this.#waiting.get(key);
    if (before !== undefined) {
      this.#waiting.delete(key);
      const againMs = sentMs - before.sentMs - latencyOf(before)!;
      const isInTime = againMs >= 0 && againMs < SAME_ATTEMPT_MS;
      const list = isAnotherTry(before, exchange) ? this.#ignored : this.#suspected;
      if (isInTime && list.length < IGNORED_MAX) list.push({ exchange: before, againMs });
    }
    if (!capitals || exchange.reply === null) return;
    this.asked++;
    if (!isRespelled(exchange)) return;
    this.changed++;
    if (this.#waiting.size >= WAITING_MAX) this.#waiting.clear();
    this.#kept.keep(exchange);
    this.#waiting.set(key, exchange);
  }

  /** Detects a client that spells one name in several ways, or a top-level domain as no person would. */
  #readSpelling({ client, name, query }: SeenExchange): void {
    if (this.#drawing.has(client.address) || this.#drawing.size >= SPELLINGS_MAX) return;
    const spelling = Buffer.from(query.subarray(HEADER.SIZE, HEADER.SIZE + name.length)).toString(
      'latin1',
    );
    const key = `${client.address} ${name}`;
    const before = this.#spellings.get(key);
    if ((before !== undefined && before !== spelling) || isDrawn(spelling))
      this.#drawing.add(client.address);
    else if (before === undefined && this.#spellings.size < SPELLINGS_MAX)
      this.#spellings.set(key, spelling);
  }
}

/** Capitals that no person writes: two humps of a letter or two, as in `sHOP` and `StRiPE`. */
const SHORT_HUMP = /[^A-Za-z][a-z](?=[A-Z])|[A-Z][a-z]{1,2}(?=[A-Z])/g;

function isDrawn(spelling: string): boolean {
  return ODD_END.test(spelling) || (spelling.match(SHORT_HUMP)?.length ?? 0) >= MIN_HUMPS;
}

/** A short top-level domain in capitals and small letters, as in `cOm`. */
const ODD_END = /[^A-Za-z](?=[A-Za-z]{2,4}$)(?=.*[a-z])[A-Za-z]+[A-Z]/;

/**
 * The same id again (c-ares takes another port), or other capitals: a new lookup of a name that a
 * program spells so has another id and the same capitals.
 */
function isAnotherTry(one: SeenExchange, other: SeenExchange): boolean {
  return one.id === other.id || isSpelledOtherwise(one.query, other.query);
}

/** True if the reply's question differs in its capitals; both are known to be the same name. */
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
