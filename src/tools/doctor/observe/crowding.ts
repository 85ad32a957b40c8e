/** Compares the number of queries that precede incompletely answered ones with the number before others. */
import { appendTo } from '../../../server/base/append-to.ts';
import { isLost, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { FLAG } from '../../../server/wire/iana.ts';
import { RESPONSE_LIMIT } from '../thresholds/lateness.ts';

/** Queries stored for one server. */
const QUERIES_MAX = 20_000;

/** Queries shortly before a query: means, and their distance in standard errors. */
export interface Crowding {
  readonly lost: number;
  readonly fine: number;
  readonly deviations: number;
}

interface Moments {
  count: number;
  sum: number;
  squares: number;
}

const noMoments = (): Moments => ({ count: 0, sum: 0, squares: 0 });
const meanOf = ({ count, sum }: Moments): number => sum / count;
const varianceOf = ({ count, sum, squares }: Moments): number =>
  Math.max(0, squares / count - (sum / count) ** 2);

/**
 * Compares how many queries were sent shortly before lost ones and before the others.
 * @param series each with the send times, negative for lost queries; only queries of one series are counted together
 * @returns null: all or none were lost
 */
export function crowdingOf(series: Iterable<readonly number[]>): Crowding | null {
  const [lost, fine] = [noMoments(), noMoments()];
  for (const times of series) {
    const sorted = times.toSorted((one, other) => Math.abs(one) - Math.abs(other));
    for (let at = 0, from = 0; at < sorted.length; at++) {
      const ms = Math.abs(sorted[at]!);
      while (Math.abs(sorted[from]!) < ms - RESPONSE_LIMIT.windowMs) from++;
      const into = sorted[at]! < 0 ? lost : fine;
      into.count++;
      into.sum += at - from;
      into.squares += (at - from) ** 2;
    }
  }
  if (lost.count === 0 || fine.count === 0) return null;
  const [one, other] = [meanOf(lost), meanOf(fine)];
  const error = Math.sqrt(varianceOf(lost) / lost.count + varianceOf(fine) / fine.count);
  return { lost: one, fine: other, deviations: error > 0 ? (one - other) / error : 0 };
}

/**
 * The queries to one server by question, from its first empty truncated reply on. Such a server may
 * count equal replies rather than all of them.
 */
export class EqualQuestions {
  readonly #times = new Map<string, number[]>();
  #count = 0;

  add(exchange: SeenExchange): void {
    const { protocol, sentMs, name, type } = exchange;
    if (protocol !== 'udp' || this.#count >= QUERIES_MAX) return;
    const isLimited = isSlip(exchange) || isLost(exchange);
    if (this.#count === 0 && !isSlip(exchange)) return;
    this.#count++;
    appendTo(this.#times, `${type} ${name}`, isLimited ? -sentMs : sentMs);
  }

  /** Of equal questions; those with an empty truncated reply count as lost. */
  get crowding(): Crowding | null {
    return crowdingOf(this.#times.values());
  }
}

/** True if the reply is empty and truncated, as a server with a limit sends it. */
function isSlip({ protocol, answers, replyFlags }: SeenExchange): boolean {
  return protocol === 'udp' && answers === 0 && (replyFlags & FLAG.TC) !== 0;
}
