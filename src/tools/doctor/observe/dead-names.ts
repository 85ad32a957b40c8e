/**
 * Detects losses that depend on the query name. A dead pod, a full table or a link lose sockets and
 * packets of all names: the probability that chance hits only certain names is computed.
 */
import type { Observations } from './observations.ts';
import { isCut } from '../../capture/pair/message-head.ts';
import { sentSpan, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { DEAD_NAMES_SHARE, MIXED_SOCKETS } from '../thresholds/silence.ts';

/** Names that a server stops answering at some moment, while it answers others. */
export interface DeadNames {
  readonly server: string;
  readonly names: readonly string[];
  /** The common suffix of all of them and of no answered name; empty if there is none. */
  readonly suffix: string;
  readonly answered: readonly string[];
  readonly losses: readonly SeenExchange[];
  /** Further losses of cut external names, which may be among these. */
  readonly cut: readonly SeenExchange[];
  /** The probability that chance loses only these names; 0 to 1. */
  readonly chance: number;
  /** The same for names that something else already separates from the others. */
  readonly chanceOfThese: number;
}

/**
 * @param losses what got no reply, of any servers.
 * @returns by server; those for which it may go by the name
 */
export function deadNames(
  observed: Observations,
  losses: readonly SeenExchange[],
): readonly DeadNames[] {
  return [...Map.groupBy(losses, ({ server }) => server.address)].flatMap(
    ([server, theirs]) => deadAt(observed, server, theirs) ?? [],
  );
}

function deadAt(
  observed: Observations,
  server: string,
  losses: readonly SeenExchange[],
): DeadNames | null {
  const { fromMs } = sentSpan(losses);
  const cut = losses.filter(({ name }) => isCut(name) && !observed.domains.isOfCluster(name));
  const known = losses.length - cut.length;
  const first = new Map<string, number>();
  for (const { name, sentMs } of losses)
    first.set(name, Math.min(sentMs, first.get(name) ?? Infinity));
  const last = observed.names.answeredBy(server);
  const names = [...first].flatMap(([name, ms]) =>
    // Whether one that is cut is answered is not known: several names may begin alike.
    !isCut(name) && (last.get(name) ?? -Infinity) < ms ? name : [],
  );
  const dead = new Set(names);
  const theirs = losses.filter(({ name }) => dead.has(name));
  const others = [...last].flatMap(([name, ms]) => (ms >= fromMs && !dead.has(name) ? name : []));
  if (names.length === 0 || others.length === 0 || theirs.length < DEAD_NAMES_SHARE * known)
    return null;
  const { all, silent } = trialsOf(observed, server, losses, fromMs);
  const suffix = suffixOf(names, others);
  // Of names some would be picked, of what they end in one.
  const picked = choices(names.length + others.length, names.length);
  const ways = suffix === '' ? picked : Math.min(picked, Math.log(names.length + others.length));
  // A cut name may not fit.
  const part = known / losses.length;
  const outcomes = choices(Math.round(part * all), Math.round(part * silent));
  return {
    ...{ server, names, suffix, answered: others, losses: theirs, cut },
    chance: Math.min(1, Math.exp(ways - outcomes)),
    chanceOfThese: Math.exp(-outcomes),
  };
}

/** Queries that could have been lost, each independently, and those that were. */
function trialsOf(
  observed: Observations,
  server: string,
  losses: readonly SeenExchange[],
  fromMs: number,
): { readonly all: number; readonly silent: number } {
  const flows = observed.flows.to(server);
  const losing = flows.filter(({ lost }) => lost > 0);
  const mixed = losing.filter(({ lastAnsweredMs }) => lastAnsweredMs >= fromMs);
  if (mixed.length < MIXED_SOCKETS * losing.length) {
    const opened = flows.filter(({ firstMs }) => firstMs >= fromMs);
    return { all: opened.length, silent: opened.filter(({ lost }) => lost > 0).length };
  }
  const seconds = observed.servers.get(server)?.history ?? [];
  const all = seconds
    .filter(([second]) => second > fromMs / 1000 - 1)
    .reduce((sum, [, { asked }]) => sum + asked, 0);
  return { all, silent: losses.length };
}

/** The longest domain that contains all of these and none of the others; empty if there is none. */
function suffixOf(names: readonly string[], others: readonly string[]): string {
  const [one = ''] = names;
  for (let at = one.indexOf('.') + 1; at > 0 && at < one.length; at = one.indexOf('.', at) + 1) {
    const domain = one.slice(at - 1);
    if (names.every((name) => name.endsWith(domain)))
      return others.some((name) => name.endsWith(domain)) ? '' : domain.slice(1);
  }
  return '';
}

/** The logarithm of the number of ways to choose this many of all. */
export function choices(all: number, some: number): number {
  let sum = 0;
  for (let at = 1; at <= Math.min(some, all - some); at++) sum += Math.log((all - at + 1) / at);
  return sum;
}
