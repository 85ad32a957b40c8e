/** The silence of a server: its begin and end, and the servers that fell silent with it. */
import { sentSpan } from '../../capture/pair/seen-exchange.ts';
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import type { Claims } from './claims.ts';
import { takeSilence } from './consequences.ts';
import { wentAstray } from './losses.ts';
import type { Observations } from './observations.ts';
import type { ServerView } from './server-view.ts';
import { areSilentByChance } from './sockets.ts';
import {
  ANSWERED_BETWEEN,
  FELL_SILENT,
  LOST_OUTSIDE,
  NEW_SOCKETS_ELSEWHERE,
  SILENCE_LOST,
} from '../thresholds/silence.ts';
import { NEARLY_ALL } from '../thresholds/evidence.ts';

export interface Window {
  readonly fromS: number;
  readonly toS: number;
  readonly lost: number;
  readonly asked: number;
}

/** Other servers that were silent in the same time: what they lost is of the same cause. */
export function silentToo(
  views: readonly ServerView[],
  first: ServerView,
  { fromS, toS }: Window,
  observed: Observations,
  claims: Claims,
): readonly string[] {
  const others = views.filter((view) => {
    const own = view === first ? null : silenceOf(view, observed);
    if (own === null || own.fromS > toS || own.toS < fromS) return false;
    const losses = claims
      .openTo(view.address)
      .filter(({ sentMs }) => sentMs >= own.fromS * 1000 && sentMs < (own.toS + 1) * 1000);
    claims.take(losses);
    return losses.length > 0;
  });
  return others.map(({ address }) => address);
}

/** From when on sockets that ask the same service are taken to others; null: that is not seen. */
export function removedFrom(
  { address, lastAskedMs }: ServerView,
  observed: Observations,
): number | null {
  const { flows, backends } = observed;
  if (backends.get(address) === undefined) return null;
  const later = flows.list.filter(({ firstMs }) => firstMs > lastAskedMs);
  return later.filter(({ lastAnsweredMs }) => lastAnsweredMs > lastAskedMs).length >=
    NEW_SOCKETS_ELSEWHERE
    ? lastAskedMs
    : null;
}

/**
 * The last reply before the silence and the first one after it, milliseconds, to the second; null:
 * there was none. Clients that wait send nothing, so send times hardly show how long it lasted.
 */
export function edgesOf(
  { history }: ServerView,
  { fromS, toS }: Window,
): { readonly fromMs: number; readonly backMs: number | null } {
  const replied = history.flatMap(([second, each]) => (each.replied > 0 ? second : []));
  let [from, back] = [fromS, toS + 1];
  for (const [at, second] of [...replied, Infinity].entries()) {
    const before = at === 0 ? fromS : replied[at - 1]!;
    if (before <= toS && second >= fromS && second - before > back - from)
      [from, back] = [before, second];
  }
  const isOver = replied.some((second) => second >= back);
  return { fromMs: from * 1000, backMs: isOver ? back * 1000 : null };
}

/**
 * The longest stretch of seconds in which a server that answers otherwise did not answer anybody.
 */
export function silenceOf(
  { address, history, outcomes }: ServerView,
  observed: Observations,
): Window | null {
  if (outcomes.asked === outcomes.lost) return null;
  let best: Window | null = null;
  let open: { fromS: number; toS: number; lost: number; asked: number } | null = null;
  const close = (): void => {
    if (open !== null && open.lost >= SILENCE_LOST && (best === null || open.lost > best.lost))
      best = open;
    open = null;
  };
  for (const [second, { asked, lost }] of history) {
    if (asked === 0) continue;
    if (lost < NEARLY_ALL * asked) {
      close();
      continue;
    }
    open ??= { fromS: second, toS: second, lost: 0, asked: 0 };
    open.toS = second;
    open.lost += lost;
    open.asked += asked;
  }
  close();
  if (best === null) return null;
  // It begins and ends within a second.
  const seconds = history.filter(([, { asked }]) => asked > 0);
  const { fromS, toS } = best as Window;
  const before = seconds.findLast(([second]) => second < fromS);
  const after = seconds.find(([second]) => second > toS);
  const edges = [before, after].filter(
    (each) => each !== undefined && each[1].lost > 0 && !answersAmid(each[0], address, observed),
  );
  const within = [fromS, toS, ...edges.map((each) => each![0])];
  const whole = { fromS: Math.min(...within), toS: Math.max(...within) };
  // Outside of it all is well, or it is a loss and not a silence.
  const outside = seconds.filter(([second]) => second < whole.fromS || second > whole.toS);
  if (sumOf(outside, 'lost') > LOST_OUTSIDE.share * sumOf(outside, 'asked') + LOST_OUTSIDE.more)
    return null;
  const lost = outcomes.lost - sumOf(outside, 'lost');
  return { ...whole, lost, asked: (best as Window).asked + lost - (best as Window).lost };
}

/** True if losses and replies alternate within that second: then time does not decide. */
function answersAmid(second: number, address: string, { flows, losses }: Observations): boolean {
  const isIn = (ms: number): boolean => Math.floor(ms / 1000) === second;
  const lost = losses.flatMap(({ server, sentMs }) =>
    server.address === address && isIn(sentMs) ? sentMs : [],
  );
  const answered = flows
    .to(address)
    .flatMap(({ lastAnsweredMs }) => (isIn(lastAnsweredMs) ? lastAnsweredMs : []));
  const [from, to] = [Math.min(...lost), Math.max(...lost)];
  return answered.filter((ms) => ms > from && ms < to).length >= ANSWERED_BETWEEN;
}

function sumOf(history: ServerView['history'], what: 'asked' | 'lost'): number {
  return history.reduce((sum, [, second]) => sum + second[what], 0);
}

/** A server that fell silent for good, and what shows it. */
export interface SilentForGood {
  readonly view: ServerView;
  readonly losses: readonly SeenExchange[];
  readonly sockets: number;
  readonly names: number;
  readonly endMs: number;
}

/**
 * A server that answered (nearly) everything, and nothing more up to the end. Clients that wait
 * send little: a few queries from different sockets and for different names show as much as many.
 */
export function silentForGood(
  view: ServerView,
  observed: Observations,
  claims: Claims,
): SilentForGood | null {
  const { address, outcomes, lastReplyMs, sinceReply } = view;
  const sockets = new Set(sinceReply.map(({ client }) => `${client.address} ${client.port}`));
  const names = new Set(sinceReply.map(({ name }) => name));
  const endMs = Math.max(observed.endMs, observed.lastMs);
  const { fromMs } = sentSpan(sinceReply);
  const losses = claims
    .openTo(address)
    .filter(({ server, sentMs }) => server.address === address && sentMs >= fromMs);
  if (
    outcomes.asked - outcomes.lost < FELL_SILENT.answered ||
    outcomes.lost - losses.length > FELL_SILENT.lost
  )
    return null;
  if (
    sinceReply.length < FELL_SILENT.asked ||
    losses.length < 2 ||
    sockets.size < FELL_SILENT.sockets
  )
    return null;
  if (wentAstray(losses)) return null;
  // The server has cluster names in memory: their losses do not depend on the name.
  const isOfName =
    names.size < FELL_SILENT.names &&
    ![...names].some(observed.domains.isOfCluster, observed.domains);
  if (isOfName || endMs - lastReplyMs < FELL_SILENT.ms) return null;
  if (areSilentByChance(observed.flows.to(address), { fromMs, toMs: Infinity })) return null;
  takeSilence(observed, claims, losses);
  return { view, losses, sockets: sockets.size, names: names.size, endMs };
}
