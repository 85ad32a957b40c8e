/**
 * The same traffic captured at several places, in the order of its way: at which stretch of it
 * queries and replies were lost. Queries are known again by id, name and type, whatever was done to
 * their addresses on the way.
 */
import { limit, type Limit } from '../../server/base/limits.ts';
import type { SeenExchange } from './pair/seen-exchange.ts';

/**
 * Exchanges that are compared, of all places together, besides those that wait for replies when
 * these have come: they are all in memory. More are left out, and that is told.
 */
export const joinLimit: Limit = limit({ default: 100_000, min: 10, max: 10_000_000 });
/** No exchange takes longer to its end, be it answered or lost: milliseconds. */
const ENDING_MS = 16_000;
/**
 * Clocks of two machines may differ by this much without a search for the difference, milliseconds.
 */
const NEAR_MS = 1000;
/** One query is nowhere seen later than this after it left. */
const WAY_MS = 2000;

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

  /**
   * Takes an exchange that has ended: they come in the order of their ends, and the lost ones late.
   */
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

/**
 * Where a message was last seen: between the place of this index and the next; at the last place,
 * beyond it.
 */
export interface PathStretch {
  readonly what: 'query' | 'reply';
  readonly from: number;
  readonly to: number;
}

/** One exchange of the first place, and what the others saw of it. */
export interface JoinedExchange {
  readonly exchange: SeenExchange;
  /**
   * Of each place: when it saw the query and the reply, on the first place's clock; null = it did
   * not.
   */
  readonly seen: readonly ({ readonly sentMs: number; readonly repliedMs: number | null } | null)[];
  /** Null: it was answered at the first place. */
  readonly lost: PathStretch | null;
}

/** What a join has found. */
export interface Join {
  readonly exchanges: readonly JoinedExchange[];
  /**
   * Milliseconds that each place's clock is ahead of the first one's (with the way of the query in
   * it).
   */
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
      const match = table.get(keyOf(exchange))?.take(exchange.sentMs + ahead) ?? null;
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
function stretchOf(seen: JoinedExchange['seen']): PathStretch {
  const last = seen.findLastIndex((each) => each !== null);
  const replied = seen.findIndex((each) => each !== null && each.repliedMs !== null);
  // The reply came back as far as `replied`, and to none before it.
  if (replied > 0) return { what: 'reply', from: replied, to: previous(seen, replied) };
  return { what: 'query', from: last, to: last + 1 };
}

/**
 * The nearest place before this one that saw the query: a place that saw nothing may not lie on the
 * way.
 */
function previous(seen: JoinedExchange['seen'], index: number): number {
  return seen.findLastIndex((each, at) => at < index && each !== null);
}

/** By what is known again of a query: what the place saw of it. */
type Table = ReadonlyMap<string, Sightings>;

function tableOf(exchanges: readonly SeenExchange[]): Table {
  const lists = new Map<string, SeenExchange[]>();
  for (const exchange of exchanges) {
    const key = keyOf(exchange);
    const known = lists.get(key);
    if (known === undefined) lists.set(key, [exchange]);
    else known.push(exchange);
  }
  const table = new Map<string, Sightings>();
  for (const [key, list] of lists) table.set(key, new Sightings(list));
  return table;
}

function keyOf({ id, type, name }: SeenExchange): string {
  return `${id} ${type} ${name}`;
}

/**
 * Exchanges that look the same, in the order of their sending. Each is taken once; those that are
 * left are found in (nearly) constant time.
 */
class Sightings {
  readonly #list: SeenExchange[];
  /**
   * From each place the way to the first that is left, there or later; the length of the list:
   * there is none.
   */
  readonly #later: number[];
  /** The same, before it: counted from 1, and 0 where there is none. */
  readonly #earlier: number[];

  constructor(list: SeenExchange[]) {
    this.#list = list.sort((one, other) => one.sentMs - other.sentMs);
    this.#later = [...list.keys(), list.length];
    this.#earlier = [...this.#later];
  }

  /** When it was sent, if it is only one; milliseconds since 1970. */
  get onlyMs(): number | null {
    return this.#list.length === 1 ? this.#list[0]!.sentMs : null;
  }

  /**
   * Takes what was sent nearest to this time, on the clock of the place; null: nothing that is left
   * was sent near it.
   */
  take(ms: number): SeenExchange | null {
    const list = this.#list;
    let [from, to] = [0, list.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (list[middle]!.sentMs < ms) from = middle + 1;
      else to = middle;
    }
    const [later, earlier] = [endOf(this.#later, from), endOf(this.#earlier, from) - 1];
    const apartMs = (at: number): number => Math.abs((list[at]?.sentMs ?? Infinity) - ms);
    const at = apartMs(later) < apartMs(earlier) ? later : earlier;
    if (apartMs(at) > WAY_MS) return null;
    this.#later[at] = at + 1;
    this.#earlier[at + 1] = at;
    return list[at]!;
  }
}

/** Where the way ends that begins at this place; who goes it next has half of it left. */
function endOf(way: number[], at: number): number {
  while (way[at] !== at) at = way[at] = way[way[at]!]!;
  return at;
}

/**
 * The median difference of what is surely the same: ids and names that stand in both captures once.
 */
function clockDifference(exchanges: readonly SeenExchange[], table: Table): number {
  const counts = new Map<string, number>();
  for (const exchange of exchanges) {
    const key = keyOf(exchange);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const differences = exchanges
    .flatMap((exchange) => {
      const key = keyOf(exchange);
      const onlyMs = counts.get(key) === 1 ? (table.get(key)?.onlyMs ?? null) : null;
      return onlyMs === null ? [] : onlyMs - exchange.sentMs;
    })
    .toSorted((one, other) => one - other);
  const median = differences[differences.length >> 1] ?? 0;
  // Small differences may be the way itself; they do no harm.
  return Math.abs(median) < NEAR_MS ? 0 : median;
}
