/** Views of the live model, as plain data. */
import { count } from '../../server/base/counted.ts';
import { filterOf } from '../capture/filter.ts';
import { listed } from '../doctor/texts.ts';
import type { ChangeLog } from './change-log.ts';
import type { ClientResolvers } from './client-resolvers.ts';
import type { FindingHistory } from './finding-history.ts';
import type { LiveInput } from './live-input.ts';
import type { LiveLimits } from './live-limits.ts';
import { clientRows, nameRows, serverAddresses, serverRows, type ListParts } from './list-views.ts';
import { byMost, byText, listRows, rowsOf, orElse } from './list-rows.ts';
import { endingOf, wastedOf } from './lookup-ending.ts';
import type { ReloadHistory } from './reload-history.ts';
import type { ReloadMark } from './reload-shape.ts';
import type { LookupRing, RingLookup } from './lookup-ring.ts';
import { lookupRow } from './lookup-row.ts';
import { nowSums } from './now-view.ts';
import type { Parties } from './parties.ts';
import type {
  ChangeRow,
  FindingRow,
  FindingsView,
  Listed,
  LookupsView,
  MemoryUse,
  NowView,
  ViewHead,
  ViewName,
  ViewQuery,
  Views,
} from './view.ts';
import { VIEW_VERSION } from './view-version.ts';
import type { WaitingQueries } from './waiting-queries.ts';
import { wasteRows, type WastePlans } from './waste-plans.ts';
import { WindowCounts } from './window-counts.ts';

/** The number of lookups in full detail to filter, newest first. */
const SCAN_MAX = 50_000;
/** The number of rows per list in the overview. */
const NOW_ROWS = 10;

/** The parts of the model that views show. */
export interface ViewedModel {
  readonly limits: LiveLimits;
  readonly nowMs: number;
  readonly beganMs: number | null;
  readonly inputs: readonly LiveInput[];
  /** Remarks about sources that are not read, for people. */
  readonly unread: readonly string[];
  readonly parties: Parties;
  readonly counts: WindowCounts;
  readonly ring: LookupRing;
  readonly resolvers: ClientResolvers;
  readonly waiting: WaitingQueries;
  readonly findings: FindingHistory;
  readonly changes: ChangeLog;
  readonly reloadHistory: ReloadHistory;
  readonly memory: MemoryUse;
  readonly plans: WastePlans;
  readonly sample: { readonly share: number };
  lostSince(fromMs: number): number;
}

/** The source of a view, which is either the whole window or the part that matches a filter. */
interface Source {
  readonly counts: WindowCounts;
  readonly fromMs: number;
  readonly sampledShare: number;
}

/** Computes a view. @throws Problem with code `usage` */
export function modelView<V extends ViewName>(model: ViewedModel, query: ViewQuery<V>): Views[V] {
  const { windowMs } = model.limits;
  const fromMs = model.nowMs - (query.lastMs ?? windowMs);
  const make: { readonly [N in ViewName]: (query: ViewQuery<N>) => Views[N] } = {
    now: (asked) => nowView(model, asked, sourceOf(model, asked, fromMs)),
    lookups: (asked) => lookupsView(model, asked, fromMs),
    clients: (asked) => listView(model, asked, fromMs, clientRows),
    names: (asked) => listView(model, asked, fromMs, nameRows),
    servers: (asked) => listView(model, asked, fromMs, serverRows),
    findings: (asked) => findingsView(model, asked),
  };
  return make[query.view](query);
}

function headOf<V extends ViewName>(model: ViewedModel, view: V, fromMs: number): ViewHead<V> {
  const { nowMs, beganMs, ring, inputs, memory, plans, unread } = model;
  const atMs = Number.isFinite(nowMs) ? nowMs : 0;
  const oldestMs = Math.min(beganMs ?? atMs, earliestOf(model));
  return {
    version: VIEW_VERSION,
    view,
    atMs,
    window: { fromMs: Math.max(Number.isFinite(fromMs) ? fromMs : 0, oldestMs), toMs: atMs },
    detailFromMs: ring.oldestMs,
    inputs: inputs.map((input) => input.row()),
    memory,
    remarks: [
      ...unread,
      ...awayRemarks(inputs),
      ...inputs.flatMap((input) => input.remarks),
      ...(plans.failed === '' ? [] : [`a plan without waste could not be made: ${plans.failed}`]),
    ],
  };
}

/** The time of the first query in the window. */
function earliestOf({ counts }: ViewedModel): number {
  let earliestMs = Infinity;
  for (const { firstMs } of counts.minutes.between(-Infinity))
    earliestMs = Math.min(earliestMs, firstMs);
  return earliestMs;
}

function listView<V extends 'clients' | 'names' | 'servers', Row>(
  model: ViewedModel,
  query: ViewQuery<V>,
  fromMs: number,
  rowsOf: (parts: ListParts, query: ViewQuery<V>) => Listed<Row>,
): ViewHead<V> & Listed<Row> {
  const parts = listParts(model, sourceOf(model, query, fromMs));
  // Lists are counted in steps of the window.
  const startMs = parts.counts.clients.startOf(parts.fromMs);
  return { ...headOf(model, query.view, startMs), ...rowsOf(parts, query) };
}

function listParts(model: ViewedModel, { counts, fromMs, sampledShare }: Source): ListParts {
  const { parties, resolvers } = model;
  const leftOut = { lostByKernel: model.lostSince(fromMs), sampledShare };
  return { counts, parties, resolvers, fromMs, leftOut };
}

function sourceOf(
  model: ViewedModel,
  { filters = [] }: Pick<ViewQuery, 'filters'>,
  fromMs: number,
): Source {
  if (filters.length === 0) return { counts: model.counts, fromMs, sampledShare: 1 };
  const isWanted = filterOf(filters, model.parties.owners);
  const counts = new WindowCounts(model.limits, model.parties);
  let scanned = 0;
  for (const lookup of model.ring.newest(fromMs)) {
    if (scanned++ >= SCAN_MAX) break;
    const queries = lookup.queries.filter((each) => isWanted(each));
    if (queries.length === 0) continue;
    const wasted = new Set(wastedOf(lookup.queries));
    for (const each of queries) counts.exchange(each);
    const { ending } = endingOf(lookup.queries);
    counts.lookup(
      lookup,
      queries,
      ending,
      queries.filter((each) => wasted.has(each)),
    );
  }
  return { counts, fromMs, sampledShare: shareOf(Math.min(scanned, SCAN_MAX), model, fromMs) };
}

/** These lookups as a fraction of those in the window. */
function shareOf(lookups: number, { counts }: ViewedModel, fromMs: number): number {
  let all = 0;
  for (const tally of counts.seconds.between(fromMs)) all += tally.lookups;
  return all === 0 ? 1 : Math.min(1, lookups / all);
}

function nowView(model: ViewedModel, query: ViewQuery<'now'>, source: Source): NowView {
  const { nowMs, limits, findings, changes } = model;
  const toMs = Number.isFinite(nowMs) ? nowMs : 0;
  const head = headOf(model, 'now', source.fromMs);
  const { fromMs } = head.window;
  const sums = nowSums(source.counts, { fromMs, toMs }, limits.windowMs);
  const parts = listParts(model, source);
  const leftOut = { leftOut: 0, ...parts.leftOut, error: 0 };
  const reloads = model.reloadHistory.marks();
  return {
    ...head,
    ...sums,
    waiting: model.waiting.size,
    lostByKernel: parts.leftOut.lostByKernel,
    clients: source.counts.clients.sums(fromMs).size,
    servers: serverAddresses(source.counts, fromMs).size,
    waste: {
      queries: sums.wasted,
      share: sums.queries === 0 ? 0 : sums.wasted / sums.queries,
      workloads: listRows(
        wasteRows({ counts: source.counts, parties: model.parties }, fromMs, toMs, model.plans),
        { most: query.most ?? NOW_ROWS },
        { wasted: byMost(({ wasted }) => wasted) },
        (row) => row,
        leftOut,
      ),
    },
    findings: findings.rows.filter(({ endedMs }) => endedMs === null).toSorted(byGravity),
    excluded: findings.excluded.length,
    unknown: findings.unknown.length,
    changes: listRows(
      changes.rows,
      { most: query.most ?? NOW_ROWS },
      { time: byMost(({ atMs }) => atMs) },
      (row) => withResult(row, reloads),
      { ...leftOut, leftOut: changes.forgotten },
    ),
    reloads: reloads.filter(({ atMs }) => atMs >= fromMs),
  };
}

/** Adds to a reload the number of answers that have been seen to change so far. */
function withResult(row: ChangeRow, reloads: readonly ReloadMark[]): ChangeRow {
  const found = row.reload === undefined ? undefined : reloads.find(({ id }) => id === row.reload);
  if (found === undefined || found.compared === 0) return row;
  const { changed } = found;
  return {
    ...row,
    text: `${row.text}: ${changed === 0 ? 'no answer' : count(changed, 'answer', 'answers')} changed`,
  };
}

function lookupsView(model: ViewedModel, query: ViewQuery<'lookups'>, fromMs: number): LookupsView {
  const { filters = [], before = Infinity, id, sort = 'time', most, skip = 0 } = query;
  const { ring, parties } = model;
  const isWanted = filterOf(filters, parties.owners);
  // Reading the list to its end needs an order that new lookups do not change.
  const byTime = orElse(
    byMost<RingLookup>(({ startMs }) => (before === Infinity ? startMs : 0)),
    byMost<RingLookup>(({ id: own }) => own),
  );
  const isNewest = sort === 'time' && query.reversed !== true;
  const wanted = skip + rowsOf(most);
  let found: RingLookup[] = [];
  let total = 0;
  let scanned = 0;
  const one = typeof id === 'number' ? ring.get(id) : null;
  for (const lookup of id === undefined ? ring.newest(fromMs, before) : one === null ? [] : [one]) {
    if (scanned >= SCAN_MAX) break;
    scanned++;
    if (!lookup.queries.some((each) => isWanted(each))) continue;
    total++;
    found.push(lookup);
    // Long lists need not be in memory completely, since only the newest lookups are shown.
    if (isNewest && found.length >= 2 * wanted + 1) found = found.sort(byTime).slice(0, wanted);
  }
  const list = listRows(
    found,
    query,
    {
      time: byTime,
      took: byMost<RingLookup>(({ startMs, endMs }) => endMs - startMs),
      queries: byMost<RingLookup>(({ queries, more }) => queries.length + more),
      name: byText<RingLookup>(({ name }) => name),
      client: byText<RingLookup>(
        ({ client, startMs }) => parties.at(client, startMs).name || client,
      ),
    },
    (lookup) => lookupRow(lookup, parties),
    {
      leftOut: ring.droppedMs >= fromMs ? ring.droppedEarly : 0,
      lostByKernel: model.lostSince(fromMs),
      sampledShare: shareOf(ring.size, model, fromMs),
      error: 0,
    },
  );
  return { ...headOf(model, 'lookups', fromMs), ...list, total };
}

function findingsView(model: ViewedModel, query: ViewQuery<'findings'>): FindingsView {
  const { findings } = model;
  const { id } = query;
  const rows = findings.rows.filter((row) => id === undefined || row.id === id);
  return {
    ...headOf(model, 'findings', model.nowMs - model.limits.windowMs),
    ...listRows(
      rows,
      query,
      {
        state: byGravity,
        severity: orElse(
          byMost(gravityOf),
          byText<FindingRow>(({ id: each }) => each),
        ),
        began: byMost<FindingRow>(({ beganMs }) => beganMs),
        code: byText<FindingRow>(({ id: each }) => each),
      },
      (row) => row,
      {
        leftOut: findings.forgotten,
        lostByKernel: model.lostSince(-Infinity),
        sampledShare: model.sample.share,
        error: 0,
      },
    ),
    checkedMs: findings.checkedMs,
    excluded: findings.excluded,
    unknown: findings.unknown,
  };
}

/** Reasons that a remark about unavailable inputs names. If there are more, it counts the inputs with the rest. */
const AWAY_REASONS = 3;

/** `1 of 3 inputs is away since 12:03:20 UTC. server 10.244.0.5:9155: connection refused`. */
function awayRemarks(inputs: readonly LiveInput[]): readonly string[] {
  const away = inputs.map((input) => input.row()).filter(({ awayMs }) => awayMs !== null);
  if (away.length === 0) return [];
  const sinceMs = Math.min(...away.map(({ awayMs }) => awayMs!));
  const since = Number.isFinite(sinceMs) ? new Date(sinceMs).toISOString().slice(11, 19) : '–';
  const verb = away.length === 1 ? 'is' : 'are';
  const reasons = [...Map.groupBy(away, ({ why }) => why)];
  const rest = reasons.slice(AWAY_REASONS).reduce((sum, [, { length }]) => sum + length, 0);
  const why = [
    ...reasons
      .slice(0, AWAY_REASONS)
      .map(([reason, rows]) => `${listed(rows.map(({ name }) => name))}: ${reason}`),
    ...(rest === 0 ? [] : [`${rest} more for other reasons`]),
  ].join('; ');
  return [`${away.length} of ${inputs.length} inputs ${verb} away since ${since} UTC. ${why}`];
}

/** Active findings come first, then the most severe, then those that started most recently. */
const byGravity = orElse<FindingRow>(
  byMost(({ endedMs }) => (endedMs === null ? 1 : 0)),
  orElse(
    byMost(gravityOf),
    byMost<FindingRow>(({ beganMs }) => beganMs),
  ),
);

function gravityOf({ severity, confidence }: FindingRow): number {
  return { critical: 2, warning: 1, info: 0 }[severity] + confidence / 2;
}
