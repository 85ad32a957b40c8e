/**
 * Computes how much a client's names would save with a lower `ndots` or a trailing dot, and which names would break.
 */
import type { Script } from './answers-file.ts';
import { countDots, type Client, type AddressFamily, type Settings } from './client.ts';
import { totalsOf } from './trace-document.ts';
import { withNdots } from './resolv-conf.ts';
import { planOnce, type StartServer } from './run-lookup.ts';

/** A name as applications write it, with a model of the network in which it was looked up. */
export interface AskedName {
  readonly name: string;
  readonly lookups: number;
  readonly families: readonly AddressFamily[];
  /** The answers for its search path candidates. */
  readonly script: Script;
  /** True if the answers are assumed, because nothing shows whether the name is a service. */
  readonly assumed: boolean;
}

export interface NameCost {
  readonly queries: number;
  readonly ok: boolean;
  /** The addresses, sorted, or the failure code. */
  readonly found: string;
}

export interface BrokenName {
  readonly name: string;
  readonly lookups: number;
  readonly was: string;
  readonly becomes: string;
}

/** A value of `ndots` and its effect. */
export interface NdotsChoice {
  readonly ndots: number;
  /** The total number of queries for all lookups. */
  readonly queries: number;
  readonly broken: readonly BrokenName[];
  /** Names that may break. */
  readonly unknown: readonly string[];
}

/** A name that is cheaper with a trailing dot and still resolves to the same addresses. */
export interface DottedName {
  readonly name: string;
  readonly lookups: number;
  /** Queries per lookup, now and with the dot. */
  readonly now: number;
  readonly dotted: number;
}

export interface ClientPlan {
  readonly client: string;
  /** The current value, which belongs to the first choice. */
  readonly ndots: number;
  readonly choices: readonly NdotsChoice[];
  /** Sorted by savings, largest first. */
  readonly dotted: readonly DottedName[];
}

/**
 * Plans each name up to three times: with the current ndots, with one below its number of dots, and with a trailing
 * dot. Sends nothing.
 * @param start starts a server that answers instead of the scripts
 */
export async function planNdots(
  client: Client,
  settings: Settings,
  names: readonly AskedName[],
  start?: StartServer,
): Promise<ClientPlan> {
  const { ndots } = client.conf(settings);
  const values = Array.from({ length: Math.max(1, ndots) }, (_, below) => ndots - below);
  const queries = new Map(values.map((value) => [value, 0]));
  const broken = new Map<number, BrokenName[]>(values.map((value) => [value, []]));
  const unknown = new Map<number, string[]>(values.map((value) => [value, []]));
  const dotted: DottedName[] = [];
  for (const asked of names) {
    const { name, lookups } = asked;
    const now = await costOf(client, settings, asked, name, start);
    const dots = countDots(name);
    const searched = !name.endsWith('.');
    // A name is tried as written first if it has at least `ndots` dots, so the exact number does not matter.
    const lower =
      searched && dots > 0 && dots < ndots
        ? await costOf(
            client,
            { ...settings, resolvConf: withNdots(settings.resolvConf, dots) },
            asked,
            name,
            start,
          )
        : now;
    for (const value of values) {
      const then = value <= dots ? lower : now;
      queries.set(value, queries.get(value)! + lookups * then.queries);
      if (asked.assumed && then !== now) unknown.get(value)!.push(name);
      if (now.ok && then.found !== now.found)
        broken.get(value)!.push({ name, lookups, was: now.found, becomes: then.found });
    }
    if (!searched || !now.ok || asked.assumed) continue;
    const plain = await costOf(client, settings, asked, `${name}.`, start);
    if (plain.found === now.found && plain.queries < now.queries)
      dotted.push({ name, lookups, now: now.queries, dotted: plain.queries });
  }
  const saved = (one: DottedName): number => one.lookups * (one.now - one.dotted);
  return {
    client: client.name,
    ndots,
    choices: values.map((value) => ({
      ndots: value,
      queries: queries.get(value)!,
      broken: broken.get(value)!,
      unknown: unknown.get(value)!,
    })),
    dotted: dotted.toSorted((a, b) => saved(b) - saved(a)),
  };
}

/** The cost of one lookup with this spelling, as planned by `ndots trace`. */
async function costOf(
  client: Client,
  settings: Settings,
  { families, script }: AskedName,
  name: string,
  start: StartServer | undefined,
): Promise<NameCost> {
  const run = await planOnce({ client, name, families, settings }, script, start);
  const found = run.results[0]!.found;
  const ok = found.failure === null;
  return {
    queries: totalsOf(run).queries,
    ok,
    found: ok ? [...found.addresses].toSorted().join(' ') : found.failure!.code,
  };
}

/**
 * The `ndots` value that saves the most and is known not to break any client, or null if none saves anything. If there
 * is a tie, the higher value wins because it changes less.
 */
export function bestNdots(plans: readonly ClientPlan[]): number | null {
  const of = (ndots: number): readonly (NdotsChoice | undefined)[] =>
    plans.map(({ choices }) => choices.find((one) => one.ndots === ndots));
  const total = (choices: readonly (NdotsChoice | undefined)[]): number =>
    choices.reduce((sum, one) => sum + (one === undefined ? Infinity : one.queries), 0);
  const [now, ...lower] = plans[0]?.choices ?? [];
  if (now === undefined) return null;
  let best = now.ndots;
  for (const { ndots } of lower) {
    const choices = of(ndots);
    if (choices.some((one) => one === undefined || one.broken.length + one.unknown.length > 0))
      continue;
    if (total(choices) < total(of(best))) best = ndots;
  }
  return best === now.ndots ? null : best;
}
