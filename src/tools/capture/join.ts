/**
 * Joins captures of the same traffic taken at several points along its path, and shows where queries and replies were
 * lost. Queries are matched by ID, name and type, so address translation does not matter.
 */
import { limit, type Limit } from '../../server/base/limits.ts';
import type { SeenExchange } from './pair/seen-exchange.ts';

/**
 * The number of exchanges from all vantage points held in memory for comparison, excluding those still waiting for
 * replies. Any more are skipped and reported.
 */
export const joinLimit: Limit = limit({ default: 100_000, min: 10, max: 10_000_000 });
/** In milliseconds. By this time, every exchange has either been answered or lost. */
const ENDING_MS = 16_000;
/** In milliseconds. Clocks that differ by less than this are not corrected. */
const NEAR_MS = 1000;
/** In milliseconds. A query reaches all vantage points within this time. */
const WAY_MS = 2000;

export class Vantage {
  readonly name: string;
  readonly exchanges: SeenExchange[] = [];
  leftOut = 0;
  /** True once it is full and all accepted exchanges have been added. */
  isOver = false;
  readonly #most: number;
  #lastMs = -Infinity;

  /** @param most the number of exchanges to compare */
  constructor(name: string, most: number) {
    this.name = name;
    this.#most = most;
  }

  /** Adds a completed exchange. They arrive in the order they ended, so lost ones come late. */
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

  /** Exchanges sent after this time may not have fitted. */
  get untilMs(): number {
    return this.leftOut === 0 ? Infinity : this.#lastMs - WAY_MS;
  }
}

/** The place where a message was last seen, which is between this vantage point and the next or beyond the last one. */
export interface PathStretch {
  readonly what: 'query' | 'reply';
  readonly from: number;
  readonly to: number;
}

/** An exchange at the first vantage point, and where else it was observed. */
export interface JoinedExchange {
  readonly exchange: SeenExchange;
  /** For each vantage point, the query and reply times according to the first one's clock, or null if not seen. */
  readonly seen: readonly ({ readonly sentMs: number; readonly repliedMs: number | null } | null)[];
  /** Null if it was answered at the first vantage point. */
  readonly lost: PathStretch | null;
}

export interface Join {
  readonly exchanges: readonly JoinedExchange[];
  /** The number of milliseconds that each clock is ahead of the first one, including the query's travel time. */
  readonly aheadMs: readonly number[];
  /** The number of the first vantage point's exchanges that each one saw. */
  readonly matched: readonly number[];
}

/** The first vantage point is the one closest to the clients. */
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

function stretchOf(seen: JoinedExchange['seen']): PathStretch {
  const last = seen.findLastIndex((each) => each !== null);
  const replied = seen.findIndex((each) => each !== null && each.repliedMs !== null);
  // The reply reached `replied`, but nothing beyond it.
  if (replied > 0) return { what: 'reply', from: replied, to: previous(seen, replied) };
  return { what: 'query', from: last, to: last + 1 };
}

/** The closest earlier vantage point that saw the query. A vantage point that saw nothing may not be on the path. */
function previous(seen: JoinedExchange['seen'], index: number): number {
  return seen.findLastIndex((each, at) => at < index && each !== null);
}

/** The exchanges seen at a vantage point, by ID, name and type. */
type Table = ReadonlyMap<string, Sightings>;

function tableOf(exchanges: readonly SeenExchange[]): Table {
  const lists = Map.groupBy(exchanges, keyOf);
  return new Map([...lists].map(([key, list]) => [key, new Sightings(list)]));
}

function keyOf({ id, type, name }: SeenExchange): string {
  return `${id} ${type} ${name}`;
}

/**
 * Exchanges that look identical, in sending order. Each is used once, and finding the next one takes nearly constant
 * time.
 */
class Sightings {
  readonly #list: SeenExchange[];
  /**
   * For each position, a pointer towards the next remaining exchange at or after it, or the list's length if there is
   * none.
   */
  readonly #later: number[];
  /** The same for the preceding one, counting from 1, or 0 if there is none. */
  readonly #earlier: number[];

  constructor(list: SeenExchange[]) {
    this.#list = list.sort((one, other) => one.sentMs - other.sentMs);
    this.#later = [...list.keys(), list.length];
    this.#earlier = [...this.#later];
  }

  /** The sending time if there is only one, in milliseconds since 1970. */
  get onlyMs(): number | null {
    return this.#list.length === 1 ? this.#list[0]!.sentMs : null;
  }

  /**
   * Removes and returns the exchange sent closest to this time according to the vantage point's clock, or null if none
   * is close.
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

/** Follows the pointers from here to the end, halving the chain for the next search. */
function endOf(way: number[], at: number): number {
  while (way[at] !== at) at = way[at] = way[way[at]!]!;
  return at;
}

/** The median difference for unambiguous exchanges, whose ID and name occur once in each capture. */
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
  // A small difference may be travel time and is harmless.
  return Math.abs(median) < NEAR_MS ? 0 : median;
}
