/**
 * The same traffic captured at several places, in the order of its way: at which stretch of it queries and replies were lost. Queries are
 * known again by id, name and type, whatever was done to their addresses on the way.
 */
import { limit, type Limit } from '../base/limits.ts';
import type { SeenExchange } from './exchanges/seen-exchange.ts';

/**
 * Exchanges that are compared, of all places together, besides those that wait for replies when these have come: they are all in memory. More are
 * left out, and that is told.
 */
export const joinLimit: Limit = limit({ default: 100_000, min: 10, max: 10_000_000 });
/** No exchange takes longer to its end, be it answered or lost: milliseconds. */
const ENDING_MS = 16_000;
/** Clocks of two machines may differ by this much without a search for the difference, milliseconds. */
const NEAR_MS = 1000;
/** One query is nowhere seen later than this after it left. */
const WAY_MS = 2000;

/** What of an exchange is compared. */
interface Trace {
  readonly sentMs: number;
  readonly repliedMs: number | null;
  readonly exchange: SeenExchange;
  taken: boolean;
}

/** What one place saw. */
export class Vantage {
  readonly name: string;
  readonly exchanges: SeenExchange[] = [];
  leftOut = 0;
  /** There is no more room, and all that has some has come. */
  isOver = false;
  readonly #most: number;
  #lastMs = -Infinity;

  /** @param most exchanges that are compared */
  constructor(name: string, most: number) {
    this.name = name;
    this.#most = most;
  }

  /** Takes an exchange that has ended: they come in the order of their ends, and the lost ones late. */
  add(exchange: SeenExchange): void {
    const { sentMs } = exchange;
    if (this.exchanges.length < this.#most) this.#lastMs = Math.max(this.#lastMs, sentMs);
    else if (sentMs > this.#lastMs) {
      this.leftOut++;
      this.isOver ||= sentMs > this.#lastMs + ENDING_MS;
      return;
    }
    this.exchanges.push(exchange);
  }

  /** What was sent later may have come after the last one that had room. */
  get untilMs(): number {
    return this.leftOut === 0 ? Infinity : this.#lastMs - WAY_MS;
  }
}

/** Where a message was last seen: between the place of this index and the next; at the last place, beyond it. */
export interface Stretch {
  readonly what: 'query' | 'reply';
  readonly from: number;
  readonly to: number;
}

/** One exchange of the first place, and what the others saw of it. */
export interface JoinedExchange {
  readonly exchange: SeenExchange;
  /** Of each place: when it saw the query and the reply, on the first place's clock; null = it did not. */
  readonly seen: readonly ({ readonly sentMs: number; readonly repliedMs: number | null } | null)[];
  /** Null: it was answered at the first place. */
  readonly lost: Stretch | null;
}

/** What a join has found. */
export interface Join {
  readonly exchanges: readonly JoinedExchange[];
  /** Milliseconds that each place's clock is ahead of the first one's (with the way of the query in it). */
  readonly aheadMs: readonly number[];
  /** Exchanges of the first place that each place saw. */
  readonly matched: readonly number[];
}

/** Joins what several places saw; the first is where the clients are. */
export function join(vantages: readonly Vantage[]): Join {
  const [first, ...others] = vantages;
  const tables = others.map(({ exchanges }) => tableOf(exchanges));
  const aheadMs = [0, ...tables.map((table) => clockDifference(first!.exchanges, table))];
  const matched = vantages.map(() => 0);
  const compared = first!.exchanges.filter(({ sentMs }) =>
    vantages.every(({ untilMs }, at) => sentMs + aheadMs[at]! <= untilMs),
  );
  const exchanges = compared.map((exchange): JoinedExchange => {
    const found = tables.map((table, index) => {
      const ahead = aheadMs[index + 1]!;
      const match = matchOf(table, exchange, ahead);
      if (match === null) return null;
      matched[index + 1]!++;
      const { sentMs, repliedMs } = match;
      return { sentMs: sentMs - ahead, repliedMs: repliedMs === null ? null : repliedMs - ahead };
    });
    matched[0]!++;
    const own = { sentMs: exchange.sentMs, repliedMs: exchange.repliedMs };
    const seen = [own, ...found];
    return { exchange, seen, lost: exchange.ending === 'answered' ? null : stretchOf(seen) };
  });
  return { exchanges, aheadMs, matched };
}

/** Where a query without a reply was lost, or its reply. */
function stretchOf(seen: JoinedExchange['seen']): Stretch {
  const last = seen.findLastIndex((each) => each !== null);
  const replied = seen.findIndex((each) => each !== null && each.repliedMs !== null);
  // The reply came back as far as `replied`, and to none before it.
  if (replied > 0) return { what: 'reply', from: replied, to: previous(seen, replied) };
  return { what: 'query', from: last, to: last + 1 };
}

/** The nearest place before this one that saw the query: a place that saw nothing may not lie on the way. */
function previous(seen: JoinedExchange['seen'], index: number): number {
  return seen.findLastIndex((each, at) => at < index && each !== null);
}

function tableOf(exchanges: readonly SeenExchange[]): ReadonlyMap<string, Trace[]> {
  const table = new Map<string, Trace[]>();
  for (const exchange of exchanges) {
    const { sentMs, repliedMs } = exchange;
    const trace = { sentMs, repliedMs, exchange, taken: false };
    const key = keyOf(exchange);
    const known = table.get(key);
    if (known === undefined) table.set(key, [trace]);
    else known.push(trace);
  }
  return table;
}

function keyOf({ id, type, name }: SeenExchange): string {
  return `${id} ${type} ${name}`;
}

function matchOf(
  table: ReadonlyMap<string, Trace[]>,
  exchange: SeenExchange,
  aheadMs: number,
): Trace | null {
  let best: Trace | null = null;
  let bestMs = WAY_MS;
  for (const trace of table.get(keyOf(exchange)) ?? []) {
    const apartMs = Math.abs(trace.sentMs - aheadMs - exchange.sentMs);
    if (trace.taken || apartMs > bestMs) continue;
    best = trace;
    bestMs = apartMs;
  }
  if (best !== null) best.taken = true;
  return best;
}

/** The median difference of what is surely the same: ids and names that stand in both captures once. */
function clockDifference(
  exchanges: readonly SeenExchange[],
  table: ReadonlyMap<string, Trace[]>,
): number {
  const counts = new Map<string, number>();
  for (const exchange of exchanges) {
    const key = keyOf(exchange);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const differences = exchanges
    .filter(
      (exchange) => counts.get(keyOf(exchange)) === 1 && table.get(keyOf(exchange))?.length === 1,
    )
    .map((exchange) => table.get(keyOf(exchange))![0]!.sentMs - exchange.sentMs)
    .toSorted((one, other) => one - other);
  const median = differences[differences.length >> 1] ?? 0;
  // Small differences may be the way itself; they do no harm.
  return Math.abs(median) < NEAR_MS ? 0 : median;
}
