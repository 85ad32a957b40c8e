/**
 * Servers that stopped and continued: no reply for seconds, and then all waiting replies at once.
 */
import type { Moment, Observations } from './observations.ts';
import type { ServerView } from './server-view.ts';
import type { Standstill } from './standstills.ts';
import { explainWaiting } from './consequences.ts';
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { type Claims } from './claims.ts';
import { isLinkLocal } from './roles.ts';
import { waitsForOthers } from './losses.ts';
import { upstreams } from './roles.ts';
import { LATE_MS, SAME_MOMENT_MS } from '../thresholds/evidence.ts';
import { RETRY_MS } from '../thresholds/transport.ts';
import {
  MIN_STANDSTILL_MS,
  REPEATED_STANDSTILL,
  STANDSTILL_OF_ALL,
  STANDSTILL_WAITING,
  STANDSTILL_WHOLE,
  WAITING_PER_REPLY,
} from '../thresholds/silence.ts';

/** Evidence that the server itself stopped, and not its upstream. */
type Proof = 'memory' | 'upstream' | 'everybody' | 'one of several';

export interface Still {
  readonly view: ServerView;
  readonly windows: readonly Standstill[];
  readonly proof: Proof;
}

/** The same, with what it explains. */
export interface StoodStill extends Still {
  /** Queries that were given up before it went on. */
  readonly lost: number;
  readonly exchanges: readonly SeenExchange[];
}

/** The server that stopped, once or several times; null: there is none. */
export function serverStandstill(observed: Observations, claims: Claims): StoodStill | null {
  const behind = upstreams(observed);
  const views = [...observed.backends.list, ...observed.servers.list];
  const all = views.flatMap((view) => {
    const found = claims.late.has(view.address) ? null : stillOf(view, observed, behind);
    return found === null ? [] : [found];
  });
  // A server that waits for another one is late with it.
  const causes = all.filter((each) => !all.some((other) => asks(each, other, observed)));
  const [cause] = causes.toSorted((one, other) => rank(one) - rank(other));
  if (cause === undefined) return null;
  const { view, windows } = cause;
  const isIn = ({ sentMs }: { readonly sentMs: number }): boolean =>
    windows.some(({ fromMs, toMs }) => sentMs >= fromMs - SAME_MOMENT_MS && sentMs < toMs);
  const late = Map.groupBy(observed.slow, ({ client }) => `${client.address} ${client.port}`);
  const losses = claims
    .openTo(view.address)
    .filter((loss) => isIn(loss) || isRetriedLate(loss, late));
  claims.take(losses);
  for (const each of all)
    if (each.windows.some((one) => overlaps(one, windows))) claims.late.add(each.view.address);
  claims.silences.push(...windows);
  explainWaiting(
    observed,
    claims,
    windows.map(({ fromMs, toMs }) => ({ server: view.address, fromMs, toMs })),
  );
  const affected = observed.affectedExchanges(
    (each) => each.server.address === view.address && isIn(each),
  );
  return {
    ...cause,
    lost: losses.length,
    exchanges: [...losses, ...affected.filter((each) => !losses.includes(each))],
  };
}

/**
 * True if the same socket repeated the query, and that was answered late. Both were answered at
 * once, so the second reply looks like a copy of the first.
 */
function isRetriedLate(
  { client, sentMs }: SeenExchange,
  late: ReadonlyMap<string, readonly Moment[]>,
): boolean {
  const theirs = late.get(`${client.address} ${client.port}`) ?? [];
  return theirs.some((each) => each.sentMs > sentMs && each.sentMs <= sentMs + RETRY_MS);
}

function stillOf(
  view: ServerView,
  observed: Observations,
  behind: ReadonlySet<string>,
): Still | null {
  const long = felt(view.standstills.list);
  const own = isOfMemory(long);
  // A server that is late at all times, and not for cluster names, is slow.
  if (!own && behind.has(view.address) && view.quantile(0.5) > LATE_MS) return null;
  // Without names of the cluster a few that wait for as long are chance.
  const whole = long.filter(
    (each) =>
      isWhole(each) &&
      (own || !behind.has(view.address) || each.waited >= STANDSTILL_WAITING.queries),
  );
  const proof = proofOf(view, whole, behind);
  const waits = ({ fromMs, toMs }: Standstill): boolean =>
    waitsForOthers(observed, view.address, fromMs, toMs);
  if (proof !== null && proof !== 'memory' && whole.some(waits)) return null;
  // Names that some have in memory take others as long.
  const isOneOfSeveral = hasWaited(long) && own;
  const isOften = proof === 'memory' && whole.length <= STANDSTILL_WHOLE * long.length;
  if (proof !== null && !(isOften && isOneOfSeveral)) return { view, windows: whole, proof };
  return isOneOfSeveral ? { view, windows: long, proof: 'one of several' } : null;
}

/** Those that are long, or come again and again. */
function felt(all: readonly Standstill[]): readonly Standstill[] {
  const long = all.filter(({ fromMs, toMs }) => toMs - fromMs >= MIN_STANDSTILL_MS);
  const short = all.filter(
    (each) =>
      each.waited >= REPEATED_STANDSTILL.waited &&
      each.own >= REPEATED_STANDSTILL.own &&
      isWhole(each),
  );
  return long.length === 0 && short.length >= REPEATED_STANDSTILL.times ? short : long;
}

/** True if no other client was answered during it. */
function isWhole({ meanwhile, waited, own }: Standstill): boolean {
  return meanwhile === 0 || (own > 0 && WAITING_PER_REPLY * meanwhile <= waited);
}

function proofOf(
  { address }: ServerView,
  windows: readonly Standstill[],
  behind: ReadonlySet<string>,
): Proof | null {
  if (!hasWaited(windows)) return null;
  if (isOfMemory(windows)) return 'memory';
  const { queries, names, sockets } = waitedIn(windows);
  if (names < STANDSTILL_OF_ALL.names) return null;
  if (behind.has(address)) return 'upstream';
  const clients = new Set([...sockets].map((socket) => socket.slice(0, socket.indexOf(' '))));
  return queries >= STANDSTILL_OF_ALL.queries && clients.size >= STANDSTILL_OF_ALL.clients
    ? 'everybody'
    : null;
}

function hasWaited(windows: readonly Standstill[]): boolean {
  const { queries, sockets, names } = waitedIn(windows);
  return (
    queries >= STANDSTILL_WAITING.queries &&
    sockets.size >= STANDSTILL_WAITING.sockets &&
    names >= STANDSTILL_WAITING.names
  );
}

function isOfMemory(windows: readonly Standstill[]): boolean {
  return waitedIn(windows).own >= STANDSTILL_WAITING.own;
}

export function waitedIn(windows: readonly Standstill[]): {
  readonly queries: number;
  /** Of these, those for names of the cluster. */
  readonly own: number;
  readonly sockets: ReadonlySet<string>;
  readonly names: number;
} {
  return {
    queries: windows.reduce((sum, { waited }) => sum + waited, 0),
    own: windows.reduce((sum, { own }) => sum + own, 0),
    sockets: new Set(windows.flatMap(({ sockets }) => [...sockets])),
    names: new Set(windows.flatMap(({ names }) => [...names])).size,
  };
}

/**
 * True if the one, or a server behind its address, queries the other, which stops at the same time.
 */
function asks(one: Still, other: Still, { backends }: Observations): boolean {
  if (one === other || !one.windows.some((each) => overlaps(each, other.windows))) return false;
  const { clients } = other.view;
  return (
    clients.has(one.view.address) ||
    backends.list.some(
      (view) =>
        clients.has(view.address) &&
        [...view.clients].some((client) => one.view.clients.has(client)),
    )
  );
}

function overlaps({ fromMs, toMs }: Standstill, windows: readonly Standstill[]): boolean {
  return windows.some((each) => each.fromMs < toMs && each.toMs > fromMs);
}

/** Upstreams first, and the address that pods use after the servers behind it. */
function rank({ view, proof }: Still): number {
  if (proof === 'upstream') return 0;
  if (proof === 'one of several') return 3;
  return isLinkLocal(view.address) ? 2 : 1;
}
