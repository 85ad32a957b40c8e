/**
 * Whether it goes by the name which queries a server leaves without a reply. A dead pod, a full
 * table or a link take sockets and packets as they come: that these are just the ones of some
 * names, and no other, is a coincidence whose chance can be counted.
 */
import type { Observations } from './observations.ts';
import { isCut } from '../../capture/pair/message-head.ts';
import { sentSpan, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { DEAD_NAMES_SHARE, MIXED_SOCKETS } from '../thresholds/silence.ts';

/** Names that a server does not answer from some moment on, while it answers others. */
export interface DeadNames {
  readonly server: string;
  readonly names: readonly string[];
  /** What all of them end in, and no name that is answered; empty: nothing. */
  readonly suffix: string;
  /** Names that are answered meanwhile. */
  readonly answered: readonly string[];
  readonly losses: readonly SeenExchange[];
  /** What was lost besides for names of outside that are cut: they may be of these. */
  readonly cut: readonly SeenExchange[];
  /** How likely it is that chance leaves out just some names of all; 0 to 1. */
  readonly chance: number;
  /** The same, for names that were told from the others by something else before. */
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
  // Of what is cut it is not known that it fits.
  const part = known / losses.length;
  const outcomes = choices(Math.round(part * all), Math.round(part * silent));
  return {
    ...{ server, names, suffix, answered: others, losses: theirs, cut },
    chance: Math.min(1, Math.exp(ways - outcomes)),
    chanceOfThese: Math.exp(-outcomes),
  };
}

/** What could have been lost, each by itself, and what was. */
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

/** The longest domain that all of these are below, and none of the others; empty: there is none. */
function suffixOf(names: readonly string[], others: readonly string[]): string {
  const [one = ''] = names;
  for (let at = one.indexOf('.') + 1; at > 0 && at < one.length; at = one.indexOf('.', at) + 1) {
    const domain = one.slice(at - 1);
    if (names.every((name) => name.endsWith(domain)))
      return others.some((name) => name.endsWith(domain)) ? '' : domain.slice(1);
  }
  return '';
}

/** The logarithm of the number of ways to choose so many of all. */
export function choices(all: number, some: number): number {
  let sum = 0;
  for (let at = 1; at <= Math.min(some, all - some); at++) sum += Math.log((all - at + 1) / at);
  return sum;
}
