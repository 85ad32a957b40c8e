/** A log of changes, such as servers that appear or disappear, rates that jump, and findings that start or end. */
import { FairList } from './fair-list.ts';
import type { Parties } from './parties.ts';
import { QueryTally } from './query-tally.ts';
import { endpointOfServer } from './server-id.ts';
import type { ChangeRow } from './view.ts';
import type { WindowCounts } from './window-counts.ts';

/** In milliseconds. A server without queries for this long is considered gone. */
const GONE_MS = 60_000;
/** New and vanished servers are reported only if they had at least this many queries. */
const QUERIES_LEAST = 20;
/** Everything counts as new until the model has run for this long. */
const SETTLED_MS = 30_000;
/** A rate has jumped if it is this many times that of the preceding period. */
const RECENT_MS = 20_000;
const BEFORE_MS = 120_000;
const TIMES = 3;
/** Fewer queries than this in the longer period are not enough for a rate. */
const RATE_LEAST = 240;
const SERVERS_MAX = 5000;

/** Remembers changes, newest last. */
export class ChangeLog {
  readonly #rows: FairList<ChangeRow>;
  /** Servers that have received queries, and whether they still do. */
  readonly #servers = new Map<string, boolean>();
  #beganMs: number | null = null;
  #rate: 'usual' | 'high' | 'low' = 'usual';

  /** @param most the number of changes to remember */
  constructor(most: number) {
    this.#rows = new FairList(most);
  }

  get rows(): readonly ChangeRow[] {
    return this.#rows.items;
  }

  get forgotten(): number {
    return this.#rows.forgotten;
  }

  /** @param input the number of the input that reports the change, or null if the model noticed it */
  add(row: ChangeRow, input: number | null = null): void {
    this.#rows.add(row, input);
  }

  watch(counts: WindowCounts, parties: Parties, nowMs: number): void {
    this.#beganMs ??= nowMs;
    const isSettled = nowMs - this.#beganMs >= SETTLED_MS;
    const recent = counts.servers.sums(nowMs - GONE_MS);
    // Sums begin earlier than requested, at the start of a step.
    const isAsked = (tally: QueryTally | undefined): boolean =>
      tally !== undefined && nowMs - tally.lastMs < GONE_MS;
    for (const [key, { tally }] of recent) {
      if (!isAsked(tally)) continue;
      const known = this.#servers.get(key);
      const isUnlisted = tally.queries < QUERIES_LEAST || this.#servers.size >= SERVERS_MAX;
      if (known === undefined && isUnlisted) continue;
      this.#servers.set(key, true);
      if (known === true || !isSettled) continue;
      this.#server(nowMs, known === undefined ? 'server-new' : 'server-back', key, parties);
    }
    for (const [key, wasAsked] of this.#servers) {
      if (!wasAsked || isAsked(recent.get(key)?.tally)) continue;
      this.#servers.set(key, false);
      this.#server(nowMs, 'server-gone', key, parties);
    }
    this.#watchRate(counts, nowMs);
  }

  #server(
    atMs: number,
    kind: 'server-new' | 'server-back' | 'server-gone',
    id: string,
    parties: Parties,
  ): void {
    const words = {
      'server-new': 'is queried for the first time',
      'server-back': 'is queried again',
      'server-gone': 'is no longer queried',
    };
    const name = parties.at(endpointOfServer(id).address, atMs).name || id;
    this.add({ atMs, kind, text: `server ${name} ${words[kind]}`, about: { view: 'servers', id } });
  }

  #watchRate({ seconds }: WindowCounts, nowMs: number): void {
    const before = rateOf(
      seconds.between(nowMs - RECENT_MS - BEFORE_MS, nowMs - RECENT_MS - 1),
      BEFORE_MS,
    );
    const recent = rateOf(seconds.between(nowMs - RECENT_MS, nowMs - 1), RECENT_MS);
    if (nowMs - (this.#beganMs ?? nowMs) < BEFORE_MS + RECENT_MS) return;
    const most = Math.max(before, recent);
    if (most * (BEFORE_MS / 1000) < RATE_LEAST) return;
    const rate = recent >= TIMES * before ? 'high' : before >= TIMES * recent ? 'low' : 'usual';
    const isNew = rate !== this.#rate && rate !== 'usual';
    this.#rate = rate;
    if (!isNew) return;
    const text = `the query rate changed from ${before.toFixed(1)} to ${recent.toFixed(1)} per second`;
    this.add({ atMs: nowMs, kind: 'rate', text, about: null });
  }
}

function rateOf(tallies: Iterable<QueryTally>, ms: number): number {
  const sum = new QueryTally();
  for (const tally of tallies) sum.merge(tally);
  return sum.queries / (ms / 1000);
}
