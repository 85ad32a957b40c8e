/**
 * Servers that are late with cluster names. A DNS pod has these in memory: a healthy one answers
 * within a few milliseconds, and one that takes much longer lacks CPU time.
 */
import type { Observations } from './observations.ts';
import type { Stalls } from './memory-replies.ts';
import type { ServerView } from './server-view.ts';
import { NEARLY_ALL } from '../thresholds/evidence.ts';
import {
  FASTEST_QUANTILE,
  MEMORY_LATE,
  MEMORY_LATE_MS,
  MEMORY_QUICKER,
  MIN_FORWARDED,
} from '../thresholds/lateness.ts';

/** Times in which a server was late with cluster names. */
export interface LateStretch {
  readonly server: ServerView;
  /** Seconds since 1970, both included. */
  readonly fromS: number;
  readonly toS: number;
  readonly replies: number;
  /** On average in these seconds, and in all others; milliseconds. */
  readonly meanMs: number;
  readonly otherwiseMs: number | null;
}

/** Late servers of the capture, also those behind other addresses. */
export function lateFromMemory(observed: Observations): readonly LateStretch[] {
  const { servers, backends } = observed;
  if (areForwarded(observed)) return [];
  return [...servers.list, ...backends.list].flatMap((server) => stretchOf(server) ?? []);
}

/** A server that stalls again and again, if only for parts of a second. */
export interface StallingServer {
  readonly server: ServerView;
  readonly stalls: Stalls;
}

/** Servers that answer a part of the cluster names late and in bursts. The ones behind other addresses come first. */
export function stallingServers(observed: Observations): readonly StallingServer[] {
  const { servers, backends } = observed;
  if (areForwarded(observed)) return [];
  return [...backends.list, ...servers.list].flatMap((server) => {
    const stalls = server.memoryReplies?.stalls ?? null;
    return stalls === null || server.stoodStill ? [] : [{ server, stalls }];
  });
}

/**
 * True if DNS pods forward cluster names, and none is found there: then they do not have them in
 * memory. (A node cache forwards to DNS pods, which find some.)
 */
function areForwarded({ servers, backends, names, domains }: Observations): boolean {
  const isServer = (address: string): boolean =>
    servers.get(address) !== undefined || backends.get(address) !== undefined;
  const isUpstream = new Map(
    servers.list.map(({ address, clients }) => [address, [...clients].some(isServer)]),
  );
  let [asked, found] = [0, 0];
  for (const view of names.list) {
    if (!domains.isOfCluster(view.name)) continue;
    for (const [server, outcomes] of view.servers)
      if (isUpstream.get(server) === true) {
        asked += outcomes.asked;
        found += outcomes.found + outcomes.nodata;
      }
  }
  return asked >= MIN_FORWARDED && found === 0;
}

function stretchOf(server: ServerView): LateStretch | null {
  const history = server.history.filter(([, { own }]) => own > 0);
  const late = history.filter(([, { own, ownMs }]) => ownMs >= MEMORY_LATE_MS * own);
  if (late.length < MEMORY_LATE.seconds) return null;
  const [fromS, toS] = [late[0]![0], late.at(-1)![0]];
  const within = history.filter(([second]) => second >= fromS && second <= toS);
  const rest = history.filter(([second]) => second < fromS || second > toS);
  const [meanMs, otherwiseMs] = [meanOf(within), meanOf(rest)];
  const replies = within.reduce((sum, [, { own }]) => sum + own, 0);
  if (
    late.length < MEMORY_LATE.share * within.length ||
    replies < MEMORY_LATE.replies ||
    meanMs === null
  )
    return null;
  if (server.stoodStill || areStandstills(server, late)) return null;
  const isQuicker =
    otherwiseMs === null
      ? server.quantile(FASTEST_QUANTILE) * MEMORY_QUICKER.least <= meanMs
      : otherwiseMs * MEMORY_QUICKER.otherwise <= meanMs;
  return isQuicker ? { server, fromS, toS, replies, meanMs, otherwiseMs } : null;
}

/**
 * True if (nearly) all of these seconds are pauses that end with all replies at once: the server
 * was stopped, and then ran.
 */
function areStandstills({ standstills }: ServerView, late: ServerView['history']): boolean {
  const times = standstills.list.filter(({ meanwhile }) => meanwhile === 0);
  const isOfOne = ([second]: ServerView['history'][number]): boolean =>
    times.some(({ fromMs, toMs }) => second >= Math.floor(fromMs / 1000) && second <= toMs / 1000);
  return late.filter(isOfOne).length >= NEARLY_ALL * late.length;
}

function meanOf(seconds: ServerView['history']): number | null {
  const replies = seconds.reduce((sum, [, { own }]) => sum + own, 0);
  return replies === 0 ? null : seconds.reduce((sum, [, { ownMs }]) => sum + ownMs, 0) / replies;
}
