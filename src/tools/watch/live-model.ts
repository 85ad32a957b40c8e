/**
 * The live model, which combines what any number of inputs show about DNS over a sliding window. It does no I/O and has
 * no clock, because time comes from packets and `advance`.
 */
import type { Peer } from '../../server/wire/exchange.ts';
import { clamp, printBytes } from '../../server/base/limits.ts';
import type { AddressOwners } from '../pods/address-owners.ts';
import { CopiedBytes } from '../capture/pair/copied-bytes.ts';
import { SearchDomains } from '../capture/pair/search-walk.ts';
import { addressOf, type SeenExchange, type SeenLookup } from '../capture/pair/seen-exchange.ts';
import { usualPorts, type ReadingEvents } from '../capture/read/reading.ts';
import { AnswerBook, type ReloadTime } from './answer-book.ts';
import { ChangeLog } from './change-log.ts';
import { ClientSample } from './client-sample.ts';
import { ClientResolvers } from './client-resolvers.ts';
import { FindingHistory, type FindingsLook } from './finding-history.ts';
import { LiveInput, type LiveInputParts } from './live-input.ts';
import { liveLimits, type LiveLimits } from './live-limits.ts';
import { endingOf, wastedOf } from './lookup-ending.ts';
import { LookupRing } from './lookup-ring.ts';
import type { MapQuery, MapView } from './map-shape.ts';
import { mapView } from './map-view.ts';
import { modelView } from './model-views.ts';
import { Parties } from './parties.ts';
import { ReloadHistory, type ReportedFiles } from './reload-history.ts';
import type { ReloadsView } from './reload-shape.ts';
import { RecentExamination, type ReadSoFar } from './recent-examination.ts';
import { traceInput, type TraceInputView } from './trace-input.ts';
import { VIEW_VERSION } from './view-version.ts';
import type { MemoryUse, ViewName, ViewQuery, Views } from './view.ts';
import { TcpAttempts } from './tcp-attempts.ts';
import { WaitingQueries } from './waiting-queries.ts';
import { WastePlans } from './waste-plans.ts';
import { WindowCounts } from './window-counts.ts';

export interface LiveModelParts {
  /** Missing limits use their defaults. */
  readonly limits?: Partial<LiveLimits>;
  /** The owners of addresses. `name` can replace them later. */
  readonly owners?: AddressOwners;
}

/**
 * In milliseconds. Doctor's rules examine the last seconds and, for quiet traffic, the last minutes as well.
 * docs/decisions/watch.md explains why.
 */
const SHORT_MS = 20_000;
const LONG_MS = 300_000;
/** If the long window has more exchanges than this, the short one is enough. */
const LONG_EXCHANGES = 20_000;
/** There is time to check this many exchanges per period. If there are more, checks become proportionally rarer. */
const CHECK_EXCHANGES = 100_000;
/** The interval between searches for workloads whose search paths waste queries, in milliseconds. */
const PLAN_MS = 30_000;
/** In milliseconds. A larger step back means that the clock was set. */
const BACK_MS = 60_000;
/** The time step with which a replayed file advances the model, in milliseconds. */
const REACH_MS = 500;
/** The estimated size in bytes of a waiting exchange and its query. */
const WAITING_BYTES = 700;

export class LiveModel {
  readonly limits: LiveLimits;
  readonly parties: Parties = new Parties();
  readonly domains: SearchDomains = new SearchDomains();
  readonly findings: FindingHistory;
  readonly changes: ChangeLog;
  readonly reloadHistory: ReloadHistory;
  readonly #answers: AnswerBook;
  /** The model's time; -Infinity: not started. */
  nowMs: number = -Infinity;
  /** The start time, or null if not started. */
  beganMs: number | null = null;
  inputs: readonly LiveInput[] = [];
  /** Remarks about sources that are not read, for people. */
  unread: readonly string[] = [];
  counts: WindowCounts;
  ring: LookupRing;
  resolvers: ClientResolvers;
  waiting: WaitingQueries = new WaitingQueries();
  #tcp = new TcpAttempts();
  readonly plans: WastePlans = new WastePlans();
  readonly sample: ClientSample = new ClientSample();
  readonly #examined = new CopiedBytes();
  #plannedMs = -Infinity;
  #short: RecentExamination;
  #long: RecentExamination;
  /** Packets dropped by the kernel, by the second in which the loss was noticed. */
  #lost: { readonly atMs: number; readonly packets: number }[] = [];
  #lostBefore = 0;
  #opened = 0;

  constructor({ limits = {}, owners }: LiveModelParts = {}) {
    this.limits = withDefaults(limits);
    this.findings = new FindingHistory(this.limits.findings, this.parties);
    this.changes = new ChangeLog(this.limits.changes);
    this.#answers = new AnswerBook(this.limits.answers, this.limits.windowMs);
    this.reloadHistory = new ReloadHistory(this.limits.reloads, this.#answers);
    this.counts = new WindowCounts(this.limits, this.parties);
    this.ring = new LookupRing(this.limits.detailBytes, this.limits.windowMs);
    this.resolvers = new ClientResolvers(this.limits.clients);
    [this.#short, this.#long] = this.#examinations();
    if (owners !== undefined) this.name(owners);
  }

  /**
   * Opens an input. The source of packets, messages or lines passes them to the input's `reading`.
   * @param name a display name such as `interface eth0, port 53`
   */
  open(name: string, parts: Partial<Omit<LiveInputParts, 'name'>> = {}): LiveInput {
    const { time = 'now', ports = usualPorts, server = null } = parts;
    const number = this.#opened++;
    const events = time === 'now' ? this.#events : this.#reachingEvents();
    const input = new LiveInput(
      number,
      { name, ports, time, server },
      server === null ? events : this.#comparingEvents(events, number, server),
      () => this.nowMs,
      this.domains,
    );
    this.inputs = [...this.inputs, input];
    return input;
  }

  /**
   * Removes an input that is no longer read. From then on, only the change log mentions it.
   * @param why a predicate for people
   */
  drop(input: LiveInput, why = 'is gone'): void {
    input.close();
    this.#noteLost(this.nowMs);
    this.inputs = this.inputs.filter((each) => each !== input);
    this.reloadHistory.drop(input.number);
    this.#lostBefore -= input.lost;
    const text = `${input.name} ${why}`;
    this.changes.add({ atMs: this.nowMs, kind: 'input', text, about: null });
  }

  /**
   * Records the configuration that the input's server is using when its stream begins. If it differs from the last
   * known one, it was loaded while the stream was interrupted.
   */
  configured(input: LiveInput, files: ReportedFiles): void {
    if (this.reloadHistory.configured(input.number, files)) {
      const atMs = this.nowMs;
      this.#reloaded(input, { fromMs: atMs, toMs: atMs }, files);
    }
  }

  /**
   * Records that the input's server is using a new configuration.
   * @param switched the time of the change on the server's clock
   * @param files null if unknown
   */
  reloaded(input: LiveInput, { fromMs, toMs }: ReloadTime, files: ReportedFiles): void {
    const switched = { fromMs: input.modelMs(fromMs), toMs: input.modelMs(toMs) };
    this.#reloaded(input, switched, files);
  }

  #reloaded(input: LiveInput, switched: ReloadTime, files: ReportedFiles): void {
    const reload = this.reloadHistory.reloaded(input, switched, files, this.nowMs);
    if (reload === null) {
      input.reading.remarks.add(
        'it reports more reloads than a server can make; some are not listed',
      );
      return;
    }
    const text = `${input.name} serves a new configuration`;
    const row = { atMs: switched.fromMs, kind: 'reload', text, about: null, reload } as const;
    this.changes.add(row, input.number);
  }

  /** Replaces the owners of addresses. Previous owners that are missing are remembered as gone. */
  name(owners: AddressOwners): void {
    const atMs = this.nowMs;
    for (const { name } of this.parties.take(owners, atMs))
      if (atMs > 0)
        this.changes.add({ atMs, kind: 'pod-gone', text: `pod ${name} is gone`, about: null });
  }

  /**
   * Advances the time, in milliseconds since 1970, by expiring waiting queries and looking for findings. Called every
   * second with the driver's clock. When replaying files, it receives the time that the replay has reached, before the
   * packets with that time.
   */
  advance(nowMs: number): void {
    if (nowMs < this.nowMs - BACK_MS) this.#restart(nowMs);
    if (nowMs <= this.nowMs) return;
    this.beganMs ??= nowMs;
    this.nowMs = nowMs;
    for (const input of this.inputs) {
      const text = input.advance(nowMs);
      if (text !== '')
        this.changes.add({ atMs: nowMs, kind: 'input', text, about: null }, input.number);
    }
    this.#noteLost(nowMs);
    this.waiting.advance(nowMs, (exchange) => this.#count(exchange));
    this.sample.advance(nowMs);
    this.#short.advance(nowMs);
    this.#long.advance(nowMs);
    this.counts.advance(nowMs);
    this.ring.advance(nowMs);
    this.#answers.advance(nowMs);
    const { checkedMs } = this.findings;
    const asked = this.#short.observed?.total.asked ?? 0;
    const periodMs = this.limits.checkMs * Math.max(1, Math.floor(asked / CHECK_EXCHANGES));
    if (checkedMs === null || nowMs - checkedMs >= periodMs) this.check();
  }

  /** Runs doctor's rules now. `advance` does so periodically. */
  check(): void {
    const atMs = this.nowMs;
    const changes = this.findings.take(lookOf(this.#short), lookOf(this.#long), atMs);
    for (const { kind, row } of changes)
      this.changes.add({
        ...{ atMs, kind },
        text: `${row.code} ${row.title}${row.subject === '' ? '' : ` (${row.subject})`}`,
        about: { view: 'findings', id: row.id },
      });
    this.changes.watch(this.counts, this.parties, atMs);
    if (atMs - this.#plannedMs < PLAN_MS) return;
    this.#plannedMs = atMs;
    this.plans.update(this, atMs - this.limits.windowMs, atMs);
  }

  /** Runs the rules and computes the plans for all that was read, because no more packets follow. */
  async complete(): Promise<void> {
    this.check();
    await this.plans.complete(this, this.nowMs - this.limits.windowMs, this.nowMs);
  }

  /** @throws Problem with code `usage` if the filter is invalid */
  view<V extends ViewName>(query: ViewQuery<V>): Views[V] {
    return modelView(this, query);
  }

  /** @throws Problem with code `usage` if the filter is invalid */
  map(query: MapQuery): MapView {
    return mapView(this, query);
  }

  /** Returns the reloads of servers that report them. */
  reloads(): ReloadsView {
    const { forgotten: leftOut, isReported } = this.reloadHistory;
    const atMs = Number.isFinite(this.nowMs) ? this.nowMs : 0;
    const rows = this.reloadHistory.rows();
    return { version: VIEW_VERSION, view: 'reloads', atMs, rows, leftOut, isReported };
  }

  /** Returns the input for tracing a name as that client, or null if it has no lookup here. */
  traceInput(client: string, name: string): TraceInputView | null {
    return traceInput(this, client, name);
  }

  /** The number of packets that the kernel has dropped since a given time. */
  lostSince(fromMs: number): number {
    return this.#lost.reduce((sum, { atMs, packets }) => (atMs >= fromMs ? sum + packets : sum), 0);
  }

  get memory(): MemoryUse {
    const { droppedEarly } = this.ring;
    return {
      usedBytes:
        this.counts.bytes +
        this.ring.bytes +
        this.resolvers.bytes +
        this.#answers.bytes +
        this.reloadHistory.bytes +
        this.waiting.held * WAITING_BYTES,
      limitBytes: this.#limitBytes,
      dropped:
        droppedEarly === 0
          ? ''
          : `${droppedEarly} lookups were dropped early, because stored lookups are limited to ${printBytes(this.limits.detailBytes)}`,
    };
  }

  /** The limit for all parts together, counted in the same way as their usage. */
  get #limitBytes(): number {
    const { detailBytes, answers, reloads } = this.limits;
    const compared = this.reloadHistory.isReported
      ? AnswerBook.limitBytes(answers) + ReloadHistory.limitBytes(reloads)
      : 0;
    return (
      detailBytes +
      compared +
      WindowCounts.limitBytes(this.limits) +
      ClientResolvers.limitBytes(this.limits.clients)
    );
  }

  readonly #events: ReadingEvents = {
    begun: (exchange) => {
      if (exchange.ending === 'waiting') this.waiting.begun(exchange);
    },
    ended: (exchange) => this.#ended(exchange),
    lookup: (lookup) => this.#lookup(lookup),
    path: (event) => {
      this.#tcp.path(event);
      this.#short.path(event);
      this.#long.path(event);
    },
    neighbour: (...of) => {
      this.#short.neighbour(...of);
      this.#long.neighbour(...of);
    },
    failure: (failure) => {
      this.#short.failure(failure);
      this.#long.failure(failure);
    },
    line: (line, number) => {
      this.#short.line(line, number);
      this.#long.line(line, number);
    },
  };

  /** Events from an input whose messages advance the model's time. */
  #reachingEvents(): ReadingEvents {
    const { begun, ended } = this.#events;
    const reach = ({ sentMs }: SeenExchange): void => {
      if (sentMs >= this.nowMs + REACH_MS || this.nowMs === -Infinity) this.advance(sentMs);
    };
    return {
      ...this.#events,
      begun: (exchange) => {
        reach(exchange);
        begun!(exchange);
      },
      ended: (exchange) => {
        reach(exchange);
        ended!(exchange);
      },
    };
  }

  /** Events from an ndots server's own stream, which also reports reloads, so answers to its clients are remembered. */
  #comparingEvents(events: ReadingEvents, input: number, { address, port }: Peer): ReadingEvents {
    // A client with an IPv6 address reaches an IPv4 server under a mapped address (RFC 4291, section 2.5.5.2).
    const own = new Set([address, `::ffff:${address}`]);
    return {
      ...events,
      ended: (exchange) => {
        const { server, ending } = exchange;
        // Its exchanges with upstreams have a different address or, on the same machine, a different port.
        if (own.has(addressOf(server)) && server.port === port && ending === 'answered')
          this.#answers.take(input, exchange);
        events.ended?.(exchange);
      },
    };
  }

  #ended(exchange: SeenExchange): void {
    if (this.nowMs === -Infinity) this.advance(exchange.sentMs);
    if (!this.waiting.ended(exchange)) this.#count(exchange);
    else if (exchange.ending === 'answered') {
      // The query was presumed lost because the client had given up, but now the reply has arrived.
      this.counts.found(exchange);
      this.#examine(exchange);
    }
  }

  #count(exchange: SeenExchange): void {
    if (exchange.ending !== 'open') this.counts.exchange(exchange);
    this.#examine(exchange);
  }

  #examine(exchange: SeenExchange): void {
    if (!this.sample.take(exchange.client.address)) return;
    // Rules hold on to exchanges, and each would pin a memory block shared with hundreds of others.
    this.#examined.keep(exchange);
    this.#short.ended(exchange);
    this.#long.ended(exchange);
  }

  #lookup(lookup: SeenLookup): void {
    const { exchanges, client, startMs } = lookup;
    for (const each of exchanges) if (this.#tcp.failedAfter(each)) each.tcpFailed = true;
    this.counts.lookup(lookup, exchanges, endingOf(exchanges).ending, wastedOf(exchanges));
    this.resolvers.add(this.parties.idAt(client, startMs), lookup);
    this.ring.add(lookup);
    if (!this.sample.has(client)) return;
    this.#short.lookup(lookup);
    this.#long.lookup(lookup);
  }

  #noteLost(atMs: number): void {
    const lost = this.inputs.reduce((sum, input) => sum + input.lost, 0);
    if (lost > this.#lostBefore) this.#lost.push({ atMs, packets: lost - this.#lostBefore });
    this.#lostBefore = lost;
    const fromMs = atMs - this.limits.windowMs;
    if (this.#lost[0] !== undefined && this.#lost[0].atMs < fromMs)
      this.#lost = this.#lost.filter((each) => each.atMs >= fromMs);
  }

  /** Handles a clock that was set back by dropping entries with a later time. */
  #restart(nowMs: number): void {
    for (const input of this.inputs) if (input.isOpen) input.reading.end();
    this.nowMs = -Infinity;
    this.beganMs = null;
    this.counts = new WindowCounts(this.limits, this.parties);
    this.ring = new LookupRing(this.limits.detailBytes, this.limits.windowMs, this.ring.nextId);
    this.waiting = new WaitingQueries();
    this.#tcp = new TcpAttempts();
    this.#lost = [];
    this.findings.checkedMs = null;
    this.#plannedMs = -Infinity;
    [this.#short, this.#long] = this.#examinations();
    const text = 'the clock was set back, so the window starts again';
    this.changes.add({ atMs: nowMs, kind: 'input', text, about: null });
  }

  #examinations(): [RecentExamination, RecentExamination] {
    const parts = { domains: this.domains, unread: () => this.#readSoFar() };
    return [
      new RecentExamination({ ...parts, windowMs: SHORT_MS }),
      new RecentExamination({ ...parts, windowMs: LONG_MS, most: LONG_EXCHANGES }),
    ];
  }

  #readSoFar(): ReadSoFar {
    const counts = new Map<string, number>();
    let messages = 0;
    for (const { reading } of this.inputs) {
      messages += reading.totals.messages;
      for (const { text, count } of reading.remarks.list)
        counts.set(text, (counts.get(text) ?? 0) + count);
    }
    return { messages, counts };
  }
}

function lookOf(examination: RecentExamination): FindingsLook | null {
  const diagnosis = examination.diagnosis();
  const { observed } = examination;
  return diagnosis === null || observed === null ? null : { diagnosis, observed };
}

function withDefaults(given: Partial<LiveLimits>): LiveLimits {
  const keys = Object.keys(liveLimits) as (keyof LiveLimits)[];
  return Object.fromEntries(
    keys.map((key) => [key, clamp(given[key] ?? liveLimits[key].default, liveLimits[key])]),
  ) as unknown as LiveLimits;
}
