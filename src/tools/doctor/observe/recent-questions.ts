/** The answered questions that clients sent in the last seconds. */
import { isAddressType, TYPE } from '../../../server/wire/iana.ts';
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { SAME_QUERY_MS } from '../thresholds/evidence.ts';
import { PAIR_MS } from '../thresholds/transport.ts';

const QUESTIONS_MAX = 20_000;
/** Types of one name that a client queries; more are not followed. Programs need fewer, and each query searches them. */
const TYPES_MAX = 16;

/** A question’s last exchange, and the number of earlier ones with its id. */
export interface RecentQuestion {
  exchange: SeenExchange;
  run: number;
  /** Its place in the line of all questions, counted from the first one. */
  place: number;
  /** True if the query for the other address family was answered at the same time. */
  isPaired: boolean;
  /** The same name with other types: the next newer and the next older one. A list of these would take more memory. */
  newer: RecentQuestion | null;
  other: RecentQuestion | null;
  /** Those of the same client. */
  readonly of: AskedQuestions;
}

export type AskedQuestions = Map<string, RecentQuestion>;

/** Drops questions that are too old to be repeated, and the oldest ones beyond a limit. */
export class RecentQuestions {
  /** The questions of all clients in the order in which they are dropped. Place `n` is at `n % QUESTIONS_MAX`. */
  readonly #line: RecentQuestion[] = [];
  /** The place of the first question and of the next one, and of the first one of the last seconds. */
  #first = 0;
  #next = 0;
  #present = 0;
  #sinceMs = -Infinity;

  /** Drops the questions before the last seconds. Older queries are not repeated. */
  advance(nowMs: number): void {
    if (nowMs - this.#sinceMs < SAME_QUERY_MS) return;
    this.#dropUntil(this.#present);
    this.#present = this.#next;
    this.#sinceMs = nowMs;
  }

  /**
   * @param newest the first one of this name
   * @param run the number of earlier queries with the same id and question
   */
  add(
    questions: AskedQuestions,
    newest: RecentQuestion | null,
    exchange: SeenExchange,
    run: number,
  ): void {
    let known = ofType(newest, exchange.type);
    if (known === null) {
      if (countTypes(newest) >= TYPES_MAX) return;
      known = {
        exchange,
        run,
        place: -1,
        isPaired: false,
        newer: null,
        other: newest,
        of: questions,
      };
      if (newest !== null) newest.newer = known;
      questions.set(exchange.name, known);
    }
    known.exchange = exchange;
    known.run = run;
    const half = otherHalf(newest, exchange);
    known.isPaired = half !== null;
    if (half !== null) half.isPaired = true;
    // A question that is soon dropped moves to the end.
    if (known.place >= Math.max(this.#present, this.#next - QUESTIONS_MAX / 2)) return;
    known.place = this.#next;
    if (this.#next - this.#first === QUESTIONS_MAX) this.#dropUntil(this.#first + 1);
    this.#line[this.#next++ % QUESTIONS_MAX] = known;
  }

  clear(): void {
    this.#line.length = 0;
    this.#first = this.#next;
  }

  #dropUntil(end: number): void {
    for (; this.#first < end; this.#first++) {
      const last = this.#line[this.#first % QUESTIONS_MAX]!;
      // A question that was repeated has another place as well.
      if (last.place === this.#first) drop(last);
    }
  }
}

/** Of the questions for one name, the one with this type. */
export function ofType(newest: RecentQuestion | null, type: number): RecentQuestion | null {
  let last = newest;
  while (last !== null && last.exchange.type !== type) last = last.other;
  return last;
}

/** The query for the other address family that was sent at the same time. */
export function otherHalf(
  newest: RecentQuestion | null,
  exchange: SeenExchange,
): RecentQuestion | null {
  if (!isAddressType(exchange.type)) return null;
  const other = ofType(newest, exchange.type === TYPE.A ? TYPE.AAAA : TYPE.A);
  return other !== null && isTogether(other.exchange, exchange) ? other : null;
}

/** True if the queries were sent at the same time. */
export function isTogether(one: SeenExchange, other: SeenExchange): boolean {
  return Math.abs(one.sentMs - other.sentMs) < PAIR_MS;
}

function countTypes(newest: RecentQuestion | null): number {
  let types = 0;
  for (let last = newest; last !== null; last = last.other) types++;
  return types;
}

function drop({ of, newer, other, exchange: { name } }: RecentQuestion): void {
  if (other !== null) other.newer = newer;
  if (newer !== null) newer.other = other;
  else if (other !== null) of.set(name, other);
  else of.delete(name);
}
