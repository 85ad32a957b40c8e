/** Computes what search paths cost each workload, and the change that would avoid this. */
import { isAddressType, RCODE, TYPE } from '../../server/wire/iana.ts';
import { searchOf, spelledName, walkOf } from '../capture/pair/spelled-name.ts';
import { emptyScript, type AnswerRule } from '../resolver/answers-file.ts';
import { findClient } from '../resolver/clients.ts';
import { bestNdots, planNdots, type AskedName, type ClientPlan } from '../resolver/ndots-plan.ts';
import { seenAnswers } from '../resolver/seen-answers.ts';
import type { ClientResolvers } from './client-resolvers.ts';
import type { RingLookup } from './lookup-ring.ts';
import { addressOfId, type Parties } from './parties.ts';
import type { Party, WastePlan, WasteRow } from './view.ts';
import type { WindowCounts } from './window-counts.ts';

/** The number of workloads with a plan, which are those that waste the most. */
const PLANNED_MAX = 5;
/** Limits on the names and lookups that a plan covers. The names are those looked up the most. */
interface PlanExtent {
  readonly names: number;
  readonly lookups: number;
}
/** While traffic arrives, the thread that reads it also computes the plans. */
const LIVE_EXTENT: PlanExtent = { names: 30, lookups: 3000 };
/** At the end of a file. The names are as many as `ndots plan` covers by default. */
const FINAL_EXTENT: PlanExtent = { names: 200, lookups: 30_000 };
/** The age at which a plan is computed again, in milliseconds. */
const STALE_MS = 300_000;
/** Kubernetes' default. For clients that use a search path, captures do not show the value. */
export const NDOTS = 5;
/** A workload that wastes fewer queries than this needs no plan. */
const WASTED_LEAST = 20;
/** The number of names listed in a plan. */
const LISTED = 10;

/** The part of the window that a plan covers, in milliseconds since 1970. */
interface PlanSpan {
  readonly fromMs: number;
  readonly nowMs: number;
}

interface Planned {
  readonly atMs: number;
  readonly plan: WastePlan | null;
}

/** The source of a workload's lookups. */
export interface WasteParts {
  readonly counts: WindowCounts;
  readonly parties: Parties;
  readonly resolvers: ClientResolvers;
  readonly ring: { newest(fromMs: number): Iterable<RingLookup> };
}

/** Workload plans, computed in the background and cached. */
export class WastePlans {
  /** Resolves when no plan is being computed. */
  settled: Promise<void> = Promise.resolve();
  /** Why a workload has no plan because of a bug, for display. Empty if there was none. */
  failed = '';
  readonly #plans = new Map<string, Planned>();
  #isBusy = false;

  /** Starts computing plans that are missing or outdated. */
  update(parts: WasteParts, fromMs: number, nowMs: number): void {
    this.#update(parts, { fromMs, nowMs }, STALE_MS, LIVE_EXTENT);
  }

  /** Computes all plans again, because no more lookups follow. */
  async complete(parts: WasteParts, fromMs: number, nowMs: number): Promise<void> {
    await this.settled;
    this.#update(parts, { fromMs, nowMs }, 0, FINAL_EXTENT);
    await this.settled;
  }

  #update(parts: WasteParts, span: PlanSpan, staleMs: number, extent: PlanExtent): void {
    const { fromMs, nowMs } = span;
    if (this.#isBusy) return;
    const due = wasteRows(parts, fromMs, nowMs, this)
      .filter(({ wasted }) => wasted >= WASTED_LEAST)
      .slice(0, PLANNED_MAX)
      .filter(({ id }) => nowMs - (this.#plans.get(id)?.atMs ?? -Infinity) >= staleMs);
    for (const [id, { atMs }] of this.#plans)
      if (nowMs - atMs > 3 * STALE_MS) this.#plans.delete(id);
    if (due.length === 0) return;
    this.#isBusy = true;
    this.settled = this.#compute(parts, due, span, extent).finally(() => (this.#isBusy = false));
  }

  of(id: string): WastePlan | null {
    return this.#plans.get(id)?.plan ?? null;
  }

  async #compute(
    parts: WasteParts,
    due: readonly WasteRow[],
    { fromMs, nowMs }: PlanSpan,
    extent: PlanExtent,
  ): Promise<void> {
    for (const { id } of due) {
      let plan: WastePlan | null = null;
      try {
        plan = await planOf(parts, id, fromMs, extent);
      } catch (error) {
        this.failed = (error as Error).message;
      }
      this.#plans.set(id, { atMs: nowMs, plan });
    }
  }
}

/** Workloads whose search paths waste queries, most wasteful first. */
export function wasteRows(
  { counts, parties }: Pick<WasteParts, 'counts' | 'parties'>,
  fromMs: number,
  nowMs: number,
  plans: WastePlans,
): readonly WasteRow[] {
  const rows = new Map<
    string,
    { party: Party; clients: number; queries: number; wasted: number }
  >();
  for (const { key, tally } of counts.clients.sums(fromMs).values()) {
    if (tally.wasted === 0) continue;
    const party = parties.at(addressOfId(key), tally.lastMs);
    const id = workloadOf(party);
    const { clients, queries, wasted } = rows.get(id) ?? { clients: 0, queries: 0, wasted: 0 };
    rows.set(id, {
      party,
      clients: clients + 1,
      queries: queries + tally.queries,
      wasted: wasted + tally.wasted,
    });
  }
  const seconds = Math.max(1, (nowMs - Math.max(fromMs, firstMsOf(counts, nowMs))) / 1000);
  return [...rows]
    .map(([id, { party, ...sums }]): WasteRow => {
      const { namespace, workload } = party;
      const wastedRate = sums.wasted / seconds;
      return { id, namespace, workload, ...sums, wastedRate, plan: plans.of(id) };
    })
    .toSorted((one, other) => other.wasted - one.wasted || (one.id < other.id ? -1 : 1));
}

/** `shop/deploy/cart`, `shop/web-0`, or an address. */
function workloadOf({ address, namespace, workload, name }: Party): string {
  if (workload !== '') return `${namespace}/${workload}`;
  return name === '' ? address : name;
}

function firstMsOf({ minutes }: WindowCounts, nowMs: number): number {
  let firstMs = nowMs;
  for (const tally of minutes.between(-Infinity)) firstMs = Math.min(firstMs, tally.firstMs);
  return firstMs;
}

/** Computes a workload's plan from its lookups in full detail, or returns null if they do not show enough. */
async function planOf(
  { parties, resolvers, ring }: WasteParts,
  id: string,
  fromMs: number,
  extent: PlanExtent,
): Promise<WastePlan | null> {
  const lookups: RingLookup[] = [];
  for (const lookup of ring.newest(fromMs)) {
    if (workloadOf(parties.at(lookup.client, lookup.startMs)) !== id) continue;
    lookups.push(lookup);
    if (lookups.length >= extent.lookups) break;
  }
  const search = searchPathOf(lookups);
  const [newest] = lookups;
  if (search.length === 0 || newest === undefined) return null;
  const { kinds } = resolvers.of(parties.idAt(newest.client, newest.startMs), false);
  const client =
    kinds.map((kind) => findClient(kind)).find((each) => each !== null) ?? findClient('glibc')!;
  const asked = askedNames(lookups, search, extent.names);
  const settings = {
    resolvConf: `nameserver 10.96.0.10\nsearch ${search.join(' ')}\noptions ndots:${NDOTS}\n`,
    nsswitch: 'hosts: files dns\n',
    ...{ hosts: null, hostAliases: null, env: {} },
    host: { hostname: 'pod', addresses: ['192.0.2.1'], loopback: [4, 6] as const },
  };
  return printPlan(await planNdots(client, settings, asked), id);
}

/** The longest search path used in a client's lookups. Empty if there is none. */
export function searchPathOf(lookups: readonly RingLookup[]): readonly string[] {
  return lookups
    .map((lookup) => searchOf({ name: lookup.name, candidates: candidatesOf(lookup) }))
    .reduce((longest, each) => (each.length > longest.length ? each : longest), []);
}

function candidatesOf({ queries }: RingLookup): readonly string[] {
  return [...new Set(queries.map(({ name }) => name))];
}

function askedNames(
  lookups: readonly RingLookup[],
  search: readonly string[],
  most: number,
): readonly AskedName[] {
  const names = new Map<
    string,
    { lookups: number; both: boolean; rules: Map<string, readonly AnswerRule[]> }
  >();
  const seen = new Map<string, { a: boolean; aaaa: boolean }>();
  for (const { queries } of lookups)
    for (const { name, type, rcode, answers } of queries) {
      if (rcode !== RCODE.NOERROR) continue;
      const has = seen.get(name) ?? { a: false, aaaa: false };
      // A log only says that the name exists.
      if (type === TYPE.A && answers !== 0) has.a = true;
      if (type === TYPE.AAAA && answers !== null && answers > 0) has.aaaa = true;
      seen.set(name, has);
    }
  for (const lookup of lookups) {
    const candidates = candidatesOf(lookup);
    if (!lookup.queries.some(({ type }) => isAddressType(type))) continue;
    const spelled = spelledName(walkOf({ name: lookup.name, candidates }), {
      search,
      ndots: NDOTS,
    });
    const known = names.get(spelled) ?? { lookups: 0, both: false, rules: new Map() };
    names.set(spelled, known);
    known.lookups++;
    known.both ||= lookup.queries.some(({ type }) => type === TYPE.AAAA);
  }
  const numbers = new Map([...seen.keys()].map((name, at) => [name, at + 1]));
  return [...names]
    .toSorted(([, one], [, other]) => other.lookups - one.lookups)
    .slice(0, most)
    .map(([name, { lookups: times, both }]) => {
      const plain = `${name.replace(/\.$/, '')}.`;
      const rules = [plain, ...search.map((domain) => `${plain}${domain}.`)].flatMap((each) => {
        const has = seen.get(each);
        return has === undefined ? [] : seenAnswers(each, numbers.get(each)!, has);
      });
      const families = both ? ([4, 6] as const) : ([4] as const);
      // Names that did not exist anywhere will not exist with another setting either.
      return { name, lookups: times, families, script: { ...emptyScript, rules }, assumed: false };
    });
}

function printPlan(plan: ClientPlan, id: string): WastePlan {
  const ndots = bestNdots([plan]);
  const [now] = plan.choices;
  const best = plan.choices.find((choice) => choice.ndots === (ndots ?? plan.ndots)) ?? now!;
  const lowest = plan.choices.at(-1)!;
  const [kind = '', name] = id.split('/').slice(-2);
  return {
    ndots,
    queriesNow: now!.queries,
    queriesThen: best.queries,
    broken: lowest.broken.slice(0, LISTED).map((broken) => broken.name),
    unknown: lowest.unknown.slice(0, LISTED),
    dotted: plan.dotted.slice(0, LISTED).map((dotted) => ({
      name: `${dotted.name}.`,
      saved: dotted.lookups * (dotted.now - dotted.dotted),
    })),
    patch: ndots === null || name === undefined || kind !== 'deploy' ? '' : patchText(ndots),
    resolver: plan.client,
  };
}

/** The argument for `kubectl patch deploy NAME --patch`. */
function patchText(ndots: number): string {
  const option = { name: 'ndots', value: String(ndots) };
  return JSON.stringify({ spec: { template: { spec: { dnsConfig: { options: [option] } } } } });
}
